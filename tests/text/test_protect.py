"""What must survive a translation becomes marks and comes back verbatim; a translation with wrong marks is told from a right one."""

import random
from collections import Counter
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limelight.text.careful.protect import (
    Protected,
    Span,
    find_placeholder_faults,
    mask_pair,
    protect,
    text_faults,
)
from limelight.text.careful.restore import restore
from limelight.text.careful.spans import MARK
from limelight.text.pieces.tokenizer import placeholder

PARTS = ["<b>", "</b>", "<i>", "</i>", "<a href='x'>", "</a>", "<br>", "<x/>", "%s", "{0}", "&amp;", "http://a.b/c", "/usr/lib", "123456",
         "😀", "⟦0⟧", "⟦3⟧", "⟦", "⟧", "<", ">", "%", "{", "}", " ", "  ", "a", "Wort", ".", "\n", "0"]  # fmt: skip
TEXTS = st.one_of(st.text(), st.lists(st.sampled_from(PARTS), max_size=30).map("".join))


def marks(*numbers: int) -> str:
    return " ".join(map(placeholder, numbers))


def test_what_a_program_fills_in_does_not_run_into_a_sentence() -> None:
    given = protect("{{count}} item. %s left")
    assert restore("⟦0⟧Ein Ding.⟦1⟧ übrig", given) == "{{count}} Ein Ding. %s übrig"
    assert restore("⟦0⟧en ⟦1⟧", given) == "{{count}}en %s"  # an ending may be
    assert restore("⟦0⟧namen", protect("%1 names")) == "%1 namen"  # as everywhere: a figure and a letter
    assert restore("⟦0⟧Ein.⟦1⟧", protect("{{count}}item.%s")) == "{{count}}Ein.%s"  # as in the source


def test_spans_become_marks_in_the_order_of_the_source() -> None:
    protected = protect("Open <b>%s</b> &amp; quit")
    assert protected == Protected(
        text="Open ⟦0⟧⟦1⟧⟦2⟧ ⟦3⟧ quit",
        spans=(Span("<b>", "tag"), Span("%s", "placeholder"), Span("</b>", "tag"), Span("&amp;", "entity")),
        numbers=(0, 1, 2, 3),
        nested=((0, 2),),
        problem=None,
    )


def test_a_translation_gets_the_spans_back_wherever_their_marks_stand() -> None:
    protected = protect("Open <b>%s</b> &amp; quit")
    assert restore("⟦3⟧ beenden; ⟦0⟧⟦1⟧⟦2⟧ öffnen", protected) == "&amp; beenden; <b>%s</b> öffnen"


@pytest.mark.slow
@given(TEXTS, st.sampled_from([0, 1, 3, 16, 256]), st.sampled_from(["long", "all"]))
def test_a_protected_text_restored_is_the_text(text: str, most: int, numbers: str) -> None:
    protected = protect(text, most, numbers)  # type: ignore[arg-type]
    assert restore(protected.text, protected) == text
    assert find_placeholder_faults(protected.text, protected) is None
    assert text_faults(text, text) is None
    assert len(protected.spans) <= most
    assert protected.numbers == tuple(range(len(protected.spans)))


@given(TEXTS)
def test_no_mark_of_the_text_itself_is_left_beside_ours(text: str) -> None:
    protected = protect(text, 256)
    assert protected.text.count("⟦0⟧") == (len(protected.spans) > 0)


@pytest.mark.parametrize(
    ("text", "nested"),
    [
        ("<b>a</b>", ((0, 1),)),
        ("<b><i>a</i></b>", ((0, 3), (1, 2))),
        ("<b>a</b><b>c</b>", ((0, 1), (2, 3))),
        ("<b><b>a</b></b>", ((0, 3), (1, 2))),
        ("<p>a<br>%s</p>", ((0, 3),)),
        ("<b><i>a</b></i>", ((0, 2),)),
        ("</b>a<b>", ()),
        ("<b>a", ()),
        ("a</b>", ()),
        ("<x/>a</x>", ()),
        ("<B>a</b>", ((0, 1),)),
        ("<p>a<p>c</p>", ((1, 2),)),
        ("<!-- a --><b>c</b>", ((1, 2),)),
    ],
)
def test_tags_are_paired_as_they_enclose_something(text: str, nested: tuple[tuple[int, int], ...]) -> None:
    assert protect(text).nested == nested


@pytest.mark.parametrize(
    ("translation", "fault"),
    [
        (marks(0, 1, 2), None),
        (marks(1, 0, 2), None),
        (marks(0, 2, 1), None),
        (marks(0, 1), "of 3 marks: 1 missing"),
        ("", "of 3 marks: 3 missing"),
        (marks(0, 1, 1, 2), "of 3 marks: 1 too often"),
        (marks(0, 1, 2, 7), "of 3 marks: 1 not of this text"),
        (marks(0, 0, 2, 9), "of 3 marks: 1 missing, 1 too often, 1 not of this text"),
        (marks(2, 1, 0), "paired tags are not nested"),
    ],
)
def test_faults_of_marks_are_told(translation: str, fault: str | None) -> None:
    assert find_placeholder_faults(translation, protect("<b>%s</b>")) == fault


@pytest.mark.parametrize(
    ("source", "right", "wrong"),
    [
        ("%s on %d", marks(0, 1), marks(1, 0)),
        ("%s of %s", marks(0, 1), marks(1, 0)),
        ("%'d / %'d - %s", marks(0, 1, 2), marks(2, 0, 1)),
        ("{} of {:>10}", marks(0, 1), marks(1, 0)),
        ("%s {0} %d", marks(1, 0, 2), marks(2, 1, 0)),
    ],
)
def test_placeholders_without_numbers_keep_their_order(source: str, right: str, wrong: str) -> None:
    protected = protect(source)
    assert find_placeholder_faults(right, protected) is None
    assert "another order" in (find_placeholder_faults(wrong, protected) or "")
    told = text_faults(source, restore(wrong, protected))
    assert told is None if source == "%s of %s" else "another order" in (told or "")
    assert mask_pair("%s on %d", "%d auf %s", range(16)) is None


def test_placeholders_with_numbers_or_names_may_change_places() -> None:
    for source in ("%1$s on %2$d", "%(a)s on %(b)d", "{0} of {1}", "%1 of %2", "%d %B %Y", "%s: %m"):
        assert find_placeholder_faults(" ".join(reversed(marks(*range(len(protect(source).spans))).split())), protect(source)) is None


def test_an_element_with_nothing_inside_is_one_mark() -> None:
    assert protect('Open <x id="7"></x> now').text == "Open ⟦0⟧ now"
    assert text_faults("<b>x</b>", "<b></b>") is None


def well_nested(order: tuple[int, ...], text: str) -> bool:
    """Written from the meaning of the words: no two pairs cross, each opens before it closes, and %s comes before %d."""
    turns = [order.index(i) for i, span in enumerate(protect(text).spans) if span.text in ("%s", "%d")]
    if turns != sorted(turns):
        return False
    pairs = [(order.index(opening), order.index(closing)) for opening, closing in protect(text).nested]
    return all(a < b for a, b in pairs) and not any(a < c < b < d for a, b in pairs for c, d in pairs)


@pytest.mark.parametrize("text", ["<b><i>a</i></b>%s", "<b>a</b><i>c</i>", "<b>%s<i>%d</i></b>", "<b>a</b><br><u>%s</u>"])
def test_an_order_of_marks_is_accepted_if_and_only_if_tags_are_well_nested_and_conversions_in_order(text: str) -> None:
    protected = protect(text)
    orders = list(permutations(protected.numbers))
    accepted = [order for order in orders if find_placeholder_faults(marks(*order), protected) is None]
    assert accepted == [order for order in orders if well_nested(order, text)]
    assert 0 < len(accepted) < len(orders)


@pytest.mark.parametrize("seed", range(20))
def test_an_accepted_order_gives_a_text_that_is_right(seed: int) -> None:
    """What is said of the marks holds of the restored text."""
    chance = random.Random(seed)
    source = "<b>a</b> %s <i>b <u>c</u></i> {0}"
    protected = protect(source)
    order = list(protected.numbers)
    chance.shuffle(order)
    text = restore(" x ".join(map(placeholder, order)), protected)
    assert (find_placeholder_faults(marks(*order), protected) is None) == (text_faults(source, text) is None)
    assert Counter(span.text for span in protect(text).spans) == Counter(span.text for span in protected.spans)


@pytest.mark.parametrize(
    ("source", "translation", "fault"),
    [
        ("<b>%s</b> a", "b <b>%s</b>", None),
        ("<b>%s</b> a", "b <b>%d</b>", "of 3 protected spans: 1 placeholder missing, 1 placeholder added"),
        ("<b>a</b>", "a", "of 2 protected spans: 2 tags missing"),
        ("a", "a %s", "of 0 protected spans: 1 placeholder added"),
        ("<b>a</b><i>c</i>", "<b>a<i>c</b></i>", "paired tags are not nested"),
        ("<b>a</b>", "</b>a<b>", "paired tags are not nested"),
        ("<a href='1'>a</a> <a href='2'>c</a>", "<a href='2'>c</a> <a href='1'>a</a>", None),
    ],
)
def test_faults_of_plain_texts_are_told(source: str, translation: str, fault: str | None) -> None:
    assert text_faults(source, translation) == fault


def test_faults_say_nothing_of_the_text() -> None:
    secret = "<b>hunter2 /home/hunter2 https://hunter2.example</b>"
    for fault in (
        text_faults(secret, ""),
        find_placeholder_faults("", protect(secret)),
        protect(secret, most=1).problem,
    ):
        assert fault
        assert "hunter2" not in fault


def test_more_spans_than_marks_are_a_problem_and_the_first_are_masked() -> None:
    protected = protect("%s " * 20, most=16)
    assert protected.problem == "20 spans are to be protected, and there are marks for 16; divide the text"
    assert protected.text == "".join(f"⟦{i}⟧ " for i in range(16)) + "%s " * 4


def test_marks_of_the_text_itself_are_masked_before_all_else() -> None:
    assert protect("%s %d ⟦1⟧ %i", most=2).text == "⟦0⟧ %d ⟦1⟧ %i"
    assert protect("⟦1⟧ %s %d", most=2).text == "⟦0⟧ ⟦1⟧ %d"
    assert protect("⟦0⟧ ⟦0⟧ ⟦0⟧ %s", most=2).text == "⟦0⟧ ⟦0⟧ ⟦0⟧ %s"


def test_an_icu_message_is_a_problem_and_its_text_stays() -> None:
    protected = protect("{n, plural, one {file} other {files}} in <b>%s</b>")
    assert protected.text == "{n, plural, one {file} other {files}} in ⟦0⟧⟦1⟧⟦2⟧"
    assert protected.problem is not None
    assert "ICU" in protected.problem


@pytest.mark.parametrize(
    ("source", "translation", "text"),
    [
        ("Open <b>it</b> now", "Jetzt ⟦0⟧ es ⟦1⟧ öffnen", "Jetzt <b>es</b> öffnen"),
        ("Open <b>it</b>.", "Öffne⟦0⟧ es ⟦1⟧.", "Öffne <b>es</b>."),
        ("<b>it</b>", "⟦0⟧ es ⟦1⟧", "<b>es</b>"),
        ("<b>it</b>x", "⟦0⟧es ⟦1⟧x", "<b>es</b> x"),
        ("a <b><i>it</i></b> z", "a⟦0⟧⟦1⟧ es ⟦2⟧⟦3⟧z", "a <b><i>es</i></b> z"),
        ("<b> it </b>", "⟦0⟧ es ⟦1⟧", "<b> es </b>"),
        ("<b>it </b>", "⟦0⟧ es ⟦1⟧", "<b>es </b>"),
        ("a <br> c", "a ⟦0⟧ c", "a <br> c"),
        ("a %s c", "a ⟦0⟧ c", "a %s c"),
    ],
)
def test_blanks_inside_paired_tags_move_outside_unless_the_source_has_them(source: str, translation: str, text: str) -> None:
    assert restore(translation, protect(source)) == text


def test_both_sides_of_a_pair_get_the_same_marks() -> None:
    choose = [7, 3, 11, 2]
    assert mask_pair("<b>%s</b> of {0}", "{0}: <b>%s</b>", choose) == ("⟦7⟧⟦3⟧⟦11⟧ of ⟦2⟧", "⟦2⟧: ⟦7⟧⟦3⟧⟦11⟧")
    assert mask_pair("%s of %s", "%s von %s", choose) == ("⟦7⟧ of ⟦3⟧", "⟦7⟧ von ⟦3⟧")


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("a", "b"),
        ("%s", "b"),
        ("a", "%s"),
        ("%s", "%1$s"),
        ("%s %d", "%s %s"),
        ("%s %s", "%s"),
        ("%s" * 5, "%s" * 5),
        ("<b>a</b><i>c</i>", "<b>a<i>c</b></i>"),
        ("<b>a</b>", "</b>a<b>"),
        ("{n, plural, one {%s}}", "{n, plural, one {%s}}"),
    ],
)
def test_a_pair_whose_spans_do_not_match_is_not_masked(source: str, target: str) -> None:
    assert mask_pair(source, target, [4, 5, 6, 7]) is None


@pytest.mark.slow
@given(st.lists(st.sampled_from(PARTS), max_size=12), st.randoms(use_true_random=False))
def test_a_masked_pair_holds_what_was_asked_for(parts: list[str], chance: random.Random) -> None:
    source = " ".join(parts)
    target = " ".join(chance.sample(parts, len(parts)))
    choose = chance.sample(range(16), 16)
    masked = mask_pair(source, target, choose)
    if masked is None:
        return
    meant = {number: span.text for number, span in zip(choose, protect(source).spans, strict=False)}
    for side, text in zip(masked, (source, target), strict=True):
        assert MARK.sub(lambda mark: meant[int(mark[1])], side) == text
    assert Counter(MARK.findall(masked[0])) == Counter(MARK.findall(masked[1])) == Counter(map(str, meant))


def test_what_would_run_together_gets_a_blank() -> None:
    made = protect("at 10:35 %1 and 12345")
    assert restore("⟦0⟧Uhr, ⟦1⟧Namen und⟦2⟧", made) == "10:35 Uhr, %1 Namen und 12345"
    assert restore("⟦2⟧⟦0⟧", made) == "12345 10:35"
    assert restore("⟦1⟧。漢⟦0⟧字", made) == "%1。漢10:35字", "no blank in scripts that have none"


def test_what_ran_together_in_the_source_may_go_on_doing_so() -> None:
    made = protect("%dpx")
    assert restore(made.text, made) == "%dpx"
    assert restore("⟦0⟧Punkte", made) == "%dPunkte"
