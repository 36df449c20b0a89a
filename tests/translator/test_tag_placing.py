"""A sentence that lost its tags is translated without them, and they are put back; a model that never learnt them is not asked for any."""

import re
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from table_engine import TableEngine, ids_of, tokenizer, upside_down

from limelight.bundle import BundleSettings, Learnt
from limelight.decoding.config import SearchSettings
from limelight.decoding.steps import Hypothesis, Request
from limelight.engines.engine import Matrix
from limelight.model.config import ModelConfig
from limelight.text.careful.protect import protect
from limelight.translator import Translation, Translator
from limelight.translator.aligning.tag_placing import _cut_words, remove_tags
from limelight.translator.pipeline import TranslationOptions

MARKS = set(tokenizer().placeholders().values())


def losing(request: Request, settings: SearchSettings) -> list[Hypothesis]:
    """The source from its last piece to its first, without a mark unless it must have it: as a model does that never saw one."""
    ids = [piece for piece in reversed(request.source) if piece not in MARKS] + list(request.once)
    return [Hypothesis(ids, -1.0, [-0.1] * (len(ids) + 1), "eos")]


class InOrder(TableEngine):
    """Each target piece looks at the source piece of its own number."""

    def attend(self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> list[Matrix]:
        return [np.eye(len(target) + 1, len(source) + 1, dtype=np.float32) for source, target in zip(sources, targets, strict=True)]


def keeping_words(request: Request, settings: SearchSettings) -> list[Hypothesis]:
    """The source without its marks, as it stands."""
    ids = [piece for piece in request.source if piece not in MARKS]
    return [Hypothesis(ids, -1.0, [-0.1] * (len(ids) + 1), "eos")]


def translator(engine: TableEngine, tags: bool | None = None) -> Translator:
    config = ModelConfig.preset("toy", tokenizer().size)
    settings = BundleSettings(languages=("en", "de"), model=config, learnt=Learnt(marks=16, tags=tags))
    return Translator(engine, settings, tokenizer(), tokenizer())


def translate(text: str, tags: bool | None = None, **options: object) -> Translation:
    return translator(TableEngine(losing), tags).translate([text], **options)[0]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("the <b>cat</b> sat", "sat <b>cat</b> the"),
        ("the <b>big cat</b> sat on", "on sat <b>cat big</b> the"),
        ("<p>the <i>big</i> cat</p>", "<p>cat <i>big</i> the</p>"),
        ("the <b>cat</b> <i>sat</i>", "<i>sat</i> <b>cat</b> the"),
        ('the <a href="x y">cat</a> sat', 'sat <a href="x y">cat</a> the'),
        ("<b>the cat</b> sat", "sat <b>cat the</b>"),
    ],
)
def test_tags_are_put_where_their_words_are(text: str, expected: str) -> None:
    made = translate(text)
    assert made.text == expected and made.protected and [notice.code for notice in made.warnings] == ["tags_placed"]
    assert translate(text, tags=False).text == expected


@pytest.mark.parametrize(
    "text",
    [
        "the big <br/> cat sat",
        "the big<br/>cat sat",
        "the big<br/> cat sat",
        "the cat sat<br/>",
        "<br/>the cat sat",
        "the <b></b> cat sat",
        "<p>the <i>big</i> cat<br/>sat</p> on <b>mat</b>",
        "the <b><i>cat</i> sat</b> on",
    ],
)
def test_words_that_stay_in_order_give_the_same_tags(text: str) -> None:
    for tags in (None, False):
        [made] = translator(InOrder(keeping_words), tags).translate([text])
        assert made.text == text and made.protected


@pytest.mark.parametrize(
    ("text", "bare"),
    [
        ("it runs <br/>.", "it runs."),
        ("it runs<br/>.", "it runs."),
        ("it <br/>, she", "it, she"),
        ("it <b>runs</b> .", "it runs ."),
        ("<br/>.", None),
    ],
)
def test_without_its_tags_a_text_has_no_blank_before_a_full_stop(text: str, bare: str | None) -> None:
    assert remove_tags(protect(text)) == (bare if bare is not None else ".")


def test_the_same_is_told_once_for_a_text_of_several_sentences() -> None:
    made = translate("the <b>cat</b> sat\n\nthe <b>big cat</b> sat\n\nthe dog")
    assert made.text == "sat <b>cat</b> the\n\nsat <b>cat big</b> the\n\ndog the" and [notice.code for notice in made.warnings] == [
        "tags_placed"
    ]


def test_capitals_and_accelerators_come_back_too() -> None:
    for text in ("THE <b>BIG CAT</b> SAT ON", "_the <b>cat</b> sat"):
        [made] = translator(InOrder(keeping_words)).translate([text])
        assert made.text == text


def test_the_second_search_has_no_marks_for_tags_and_a_model_without_them_is_asked_once() -> None:
    engine = TableEngine(losing)
    translator(engine).translate(["the <b>cat</b> sat"])
    (first,), (second,) = engine.batches
    assert MARKS & set(first.source) and list(second.source) == ids_of("the cat sat")
    untaught = TableEngine(losing)
    translator(untaught, tags=False).translate(["the <b>cat</b> sat", "the dog"])
    assert [[list(each.source) for each in batch] for batch in untaught.batches] == [[ids_of("the cat sat")], [ids_of("the dog")]]


def test_a_model_that_learnt_tags_puts_them_itself() -> None:
    for tags in (True, None):
        engine = TableEngine(upside_down)  # all is kept, in an order that is wrong for a pair and right for one that stands alone
        [made] = translator(engine, tags).translate(["the cat <br/> sat"])
        assert made.text.split() == ["sat<br/>", "cat", "the"] and not made.warnings and len(engine.batches) == 1


def test_what_is_no_tag_is_still_the_model_s_to_place() -> None:
    made = translator(TableEngine(upside_down), tags=False).translate(["the <b>%s big cat</b> sat on"])[0]
    assert re.fullmatch("on sat <b>cat big ?%s</b> the", made.text) and made.protected


def test_other_ways_to_ask_give_the_same() -> None:
    made = translator(TableEngine(losing), tags=False)
    texts = ["the <b>cat</b> sat", "the dog", "a <i>big</i> dog"]
    usual = [each.text for each in made.translate(texts)]
    plan, wanted = made.plan(texts), TranslationOptions(align=True, probabilities=True)
    settings = made.settings.search
    begun = made.begin(plan.asked, settings, wanted)
    assert [each.text for each in begun if isinstance(each, Translation)] == usual
    lost = translator(TableEngine(losing))
    waiting = [each for each in lost.begin(lost.plan(texts).asked, settings, wanted) if not isinstance(each, Translation)]
    ended = lost.end([each for each in waiting if each is not None], settings, wanted)
    assert [each.text for each in ended if each is not None] == [usual[0], usual[2]]


def test_words_links_and_pieces_are_those_that_are_shown() -> None:
    made = translate("the <b>cat</b> sat", align=True, probabilities=True)
    assert [word.text for word in made.words] == ["sat", "<b>cat</b>", "the"] and made.alignment is not None
    assert "".join(piece.text for piece in made.pieces if piece.text.startswith("<")) == "<b></b>"
    assert [piece.text for piece in made.pieces] == ["▁sat", "▁", "<b>", "▁cat", "</b>", "▁the"]


def test_what_it_must_begin_with_or_contain_is_searched_under_constraints() -> None:
    for asked in ({"prefixes": ["sat"]}, {"phrases": [["sat"]]}):
        [made] = translator(TableEngine(losing)).translate(["the <b>cat</b> sat"], **asked)  # type: ignore[arg-type]
        assert "tags_placed" not in [notice.code for notice in made.warnings]


def test_without_guards_or_protection_nothing_is_put_back() -> None:
    [made] = translator(TableEngine(losing), tags=False).translate(["the <b>cat</b> sat"], guards=False)
    assert not made.protected
    [made] = translator(TableEngine(losing), tags=False).translate(["the cat"], protect=False)
    assert made.text == "cat the"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a <b>girl</b> runs", "a girl runs"),
        ("one<br>two", "one two"),
        ("one <br> two", "one two"),
        ("un<b>known</b>", "unknown"),
        ("see <i>%s</i>", "see %s"),
        ("it<img/>.", "it."),
        ("(<img/>a woman)", "(a woman)"),
        ("sits.<br/><b>Two</b>", "sits. Two"),
        ("<p>one</p><p>two</p>", "one two"),
        ("a<b> b</b>", "a b"),
        ("no tags: %s", None),
        ("<b></b>", None),
    ],
)
def test_a_text_without_its_tags(text: str, expected: str | None) -> None:
    assert remove_tags(protect(text)) == expected


CATS = ("the", "cat", "sat", "on")


def name_cat(word: str) -> str:
    """The word that stands in it beside tags."""
    return next((each for each in CATS if each in re.sub("<[^>]*>|<a|href='x|y'>", "", word)), "")


@pytest.mark.parametrize("text", ["the <b>cat</b> sat on", "the cat <br/> sat on", "the <a href='x y'>cat sat</a> on"])
def test_words_beside_tags_have_the_links_that_they_have_without_them(text: str) -> None:
    made, alone = translate(text, align=True), translate("the cat sat on", align=True)
    assert made.alignment is not None and alone.alignment is not None
    given, shown = map(name_cat, text.split(" ")), [name_cat(word) for word in made.text.split(" ")]
    sources = list(given)
    links = {(sources[s], shown[t]) for s, t in made.alignment.words if shown[t]}
    assert links == {(CATS[s], alone.text.split(" ")[t]) for s, t in alone.alignment.words}


@pytest.mark.parametrize("depth", [1, 3, 6])
def test_a_text_that_has_other_tags_without_its_tags_is_not_searched_for_ever(depth: int) -> None:
    engine = TableEngine(losing)
    inner = "<" * depth + "<i>" + "i>" * depth + "cat" + "<" * depth + "</i>" + "/i>" * depth
    translator(engine, tags=False).translate([f"the {inner} sat"])
    assert sum(map(len, engine.batches)) <= 4


@pytest.mark.parametrize("text", ["the &<b>cat</b> sat", "the _<b>big cat</b> sat"])
def test_a_sign_beside_a_tag_is_not_taken_for_that_of_an_accelerator(text: str) -> None:
    [made] = translator(InOrder(keeping_words), tags=False).translate([text])
    assert "tags_placed" not in [notice.code for notice in made.warnings]


def test_a_letter_that_is_spelt_in_bytes_is_not_parted() -> None:
    assert _cut_words(["\u2581", "<0xE4>", "<0xBD>", "<0xA0>", "\u597d"], "zh") == [range(1), range(1, 4), range(4, 5)]


def test_what_is_not_searched_does_not_make_a_sentence_too_long() -> None:
    engine = TableEngine(losing, longest=60)
    long = f'<a href="https://example.org/{"x" * 300}">the cat</a> sat on'
    [made] = translator(engine, tags=False).translate([long])
    assert "split" not in [notice.code for notice in made.warnings] and made.protected


def test_what_was_placed_with_another_fault_is_not_forced_afterwards() -> None:
    """The number is lost with the tags and without them; nothing is left to do but to say so."""

    def without_numbers(request: Request, settings: SearchSettings) -> list[Hypothesis]:
        kept = set(ids_of("the cat sat on"))
        ids = [piece for piece in request.source if piece in kept]
        return [Hypothesis(ids, -1.0, [-0.1] * (len(ids) + 1), "eos")]

    for tags in (None, False):
        engine = InOrder(without_numbers)
        [made] = translator(engine, tags).translate(["the <b>cat</b> sat on 7"], align=True)
        assert made.text == "the <b>cat</b> sat on" and made.alignment is not None
        assert [notice.code for notice in made.warnings] == ["tags_placed", "numbers"]
        assert sum(map(len, engine.batches)) <= 3
