"""What must survive is found whole, what only looks like it is not, and hostile text takes linear time."""

import time
from collections import Counter

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from limelight.text import patterns
from limelight.text.careful.spans import find, in_turn

PLACEHOLDERS = [
    "%s", "%d", "%i", "%5.2f", "%-10s", "%'d", "%03d", "%*d", "%lld", "%1$s", "%2$.1f", "%(name)s", "%(count)d", "%1", "%L1", "%PATH%",
    "%%", "%%a", "%%(title)s", "%{name}", "%<n>d", "%,d", "%@", "%1$@", "%n", "[X0X]", "[X7X]", "[X131X]",
    "{}", "{0}", "{name}", "{user.name}", "{0:x}", "{name!r}", "${name}", "#{name}", "{{name}}", "{{ name | upper }}", "{ $count }",
    "{% if a %}", "{0,10}", "{0:#,##0.00}", "{:>10}", "{n, number, integer}", "{ DATETIME($date) }", "$(CC)",
    "$HOME", "$NAME$", "@VERSION@", "__name__", "%#@files@", "%arg", "$t(common.name)",
    "\\n", "${a + b}", "{a[0]}", "{#}", "{0,choice,0#no files|1#one file|1<{0} files}", "{0,number,#.##}",
]  # fmt: skip
TAGS = [
    "<b>", "</b>", "<br>", "<br/>", "<br />", "<B>", "</qt>", "<nl/>", '<a href="x y">', '<a title="a > b" href=x>', "<x:g id='1'>",
    "<hr noshade>", '<font color="red size=3>', "<!-- note -->", "<!DOCTYPE html>", "<?php echo ?>", "<%= name %>",
    '<x id="7"></x>', "<keep/>", "<i class='icon'></i>",
]  # fmt: skip
ADDRESSES = [
    "http://example.org", "https://example.org/a?b=c&d=%20#e", "HTTPS://EXAMPLE.ORG/", "ftp://x", "irc://", "www.example.org/x",
    "mailto:me@example.org", "me.too+x@mail.example.org", "example.org/page", "http://a.b/c_(d)", "https://example.org/%s",
]  # fmt: skip
PATHS = [
    "/usr/lib/libm.so", "/etc", "/home/me/", "~/.ssh/config", "./configure", "../up/x", "/path/to/file", "/Data/x.txt",
    "/home/$USER/.config", "C:\\Users\\me\\x.txt", "C:\\Program Files (x86)\\x", "\\\\server\\share\\x", "src/main.py", "/proc/*/cmdline",
]  # fmt: skip
NUMBERS = [
    "12345", "123456789012", "DE89 3704 0044 0532 0130 00", "DE89370400440532013000", "GB29 NWBK 6016 1331 9268 19", "AB-12345",
    "ISO-8859-15", "2024-05-03", "555-123-4567", "192.168.0.1", "192.168.0.1:8080",
    "550e8400-e29b-41d4-a716-446655440000", "KB5034441", "id12345",
]  # fmt: skip
EMOJI = ["😀", "😀😀", "👩‍🚀", "👍🏽", "🇩🇪", "❤️", "1️⃣", "☎", "🏴󠁧󠁢󠁳󠁣󠁴󠁿", "™️"]


def found(text: str, **how: str) -> list[str]:
    return [text[start:end] for start, end, _ in find(text, **how)]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("span", "kind"),
    [(span, kind) for kind, spans in (("placeholder", PLACEHOLDERS), ("tag", TAGS), ("address", ADDRESSES), ("path", PATHS),
                                      ("number", NUMBERS), ("emoji", EMOJI), ("entity", ["&amp;", "&#160;", "&#xA0;", "&kde;", "&nbsp;"]),
                                      ("mark", ["⟦0⟧", "⟦15⟧", "⟦255⟧"])) for span in spans],
)  # fmt: skip
def test_a_span_is_found_whole(span: str, kind: str) -> None:
    for before, after in (("", ""), ("a ", " b"), ("(", ")"), ("„", "“"), ("a ", ", b"), ("ä ", "."), ("\n", "\n")):
        if kind == "number" and after == "." and span.count("."):
            continue  # 192.168.0.1. may go on
        text = before + span + after
        assert find(text) == [(len(before), len(before + span), kind)], text


@pytest.mark.parametrize(
    "text",
    [
        "", "a", "Größe", "a < b and c > d", "<3", "<file> and <Ctrl>", "x<y && z>w", "a <b and c> d", "<b", "b>", "<>", "<<>>",
        "<your name>", "50 % of", "100% sure", "100%sure", "20%ige", "20 %ige", "100%", "5 % d'eau", "5%d'eau", "a 20%-a", "100%x100%",
        "a % d", "5 $ each", "$5", "$1", "a % of",
        "%", "{", "}", "{a, b}", "{End of Text}",
        "{{PLURAL:$1|file|files}}", "snake_case", "@name", "me@home", "f&uuml;r", "don&#39;t", "&quot;", "AT&T", "Tom & Jerry", "&File",
        "and/or", "date/time", "/Edit/Preferences", "/help", "I/O", "~5", "1/2", "e.g. this", "d.h. so", "README.txt", "example.org",
        "1234", "\u0661\u0662\u0663\u0664\u0665", "1,234,567", "1.234.567,8", "3.14159265", "12345.67", "2013-2014",
        "MP3", "www.", "mailto: link", "...", "© 2024", "→",
        "⟦x⟧", "⟦007⟧", "[XX]", "[X7]", "C#", "# 5",
        "{n, plural, one {file} other {files}}",
    ],
)  # fmt: skip
def test_what_only_looks_like_a_span_is_none(text: str) -> None:
    assert found(text) == []


def test_an_unknown_opening_tag_is_one_if_it_is_closed() -> None:
    assert found("<para>Save <file></para>") == ["<para>", "</para>"]


def test_spans_side_by_side_are_told_apart() -> None:
    assert found("%s%s %d%% %1%2 {a}{b}") == ["%s", "%s", "%d", "%%", "%1", "%2", "{a}", "{b}"]
    assert found("100%% of 20%ige, %%a") == ["%%", "%%a"]
    assert found("Image size %ux%u, %sen, %dmal") == ["%u", "%u", "%s", "%d"]
    assert found("<b>http://a.b/c</b>, %s/%s") == ["<b>", "http://a.b/c", "</b>", "%s", "%s"]


@pytest.mark.parametrize(
    ("text", "conversions"),
    [
        ("$5%s", ["%s"]),
        ("10%s", ["%s"]),
        ("0%d:0%d", ["%d", "%d"]),
        ("5%d of", ["%d"]),
        ("Save 10%(x)s", ["%(x)s"]),
        ("v2 2%1$s", ["%1$s"]),
        ("1%-5s", ["%-5s"]),
        ("0%.2f", ["%.2f"]),
        ("0%1:0%2", ["%1", "%2"]),
        ("x: % d, % 5d", ["% d", "% 5d"]),
        ("50% of %s", ["%s"]),
        ("100%sure 20%s", ["%s"]),
    ],
)
def test_a_conversion_wins_over_a_percentage(text: str, conversions: list[str]) -> None:
    assert found(text) == conversions


@pytest.mark.parametrize(
    ("spans", "groups"),
    [
        (["%s", "<b>", "%d", "</b>"], [[0, 2]]),
        (["%'d", "%-10s", "%*d", "%lu", "%@", "% d", "%,d"], [[0, 1, 2, 3, 4, 5, 6]]),
        (["%s", "%m", "%%", "%d"], [[0, 3]]),
        (["{}", "%s", "{:>10}", "{!r}", "%d"], [[1, 4], [0, 2, 3]]),
        (["%1$s", "%2$d", "%(n)d", "%1", "%L2", "{0}", "{n}", "%{n}", "%<n>d", "$n", "[X7X]"], []),
        (["%d", "%B", "%Y"], []),  # the parts of a date may change places
        (["%Z", "%u", "%s"], [[0, 1, 2]]),  # of GCC: no date
    ],
)
def test_what_is_filled_in_one_after_the_other_is_known(spans: list[str], groups: list[list[int]]) -> None:
    assert in_turn(spans) == groups


def test_an_address_leaves_to_the_sentence_what_is_of_the_sentence() -> None:
    assert found("See http://a.b/c. Or (https://d.e/f), 'www.g.h'?") == ["http://a.b/c", "https://d.e/f", "www.g.h"]
    assert found("smb://[your address] &lt;http://a.b&gt; eine http://-Adresse") == [
        "smb://",
        "&lt;",
        "http://a.b",
        "&gt;",
        "http://",
    ]


def test_a_code_ends_where_a_german_compound_goes_on() -> None:
    assert found("ISO-8859-15-Zeichen, 50000-Euro-Frage, 12345er") == ["ISO-8859-15", "50000", "12345"]


def test_all_numbers_dates_and_times_are_found_if_asked_for() -> None:
    text = "On 5/3/2024 at 15:30, 1,234.5 of 1 000 000 and 7 MP3 files; version v2.13.0 or 2.13.0, 3rd, don&#39;t"
    assert found(text, numbers="all") == ["5/3/2024", "15:30", "1,234.5", "1 000 000", "7", "2.13.0", "3"]
    assert found(text) == ["15:30"]


def test_a_time_is_kept_unless_its_style_may_change() -> None:
    assert found("at 10:35, not at 3:30 pm or 3:30 p.m., 16:9 or 1:2:3") == ["10:35"]
    assert found("10:35:07") == ["10:35:07"] and found("x10:35 10:357") == []


def test_placeholders_are_those_of_the_filters_of_a_corpus() -> None:
    """The patterns were written anew for Python's engine; on what both know they agree."""
    texts = [f"a {one} b{other} (c)" for one in PLACEHOLDERS for other in (".", " 5", "-", "s")]
    by_filter = pl.Series(texts).str.extract_all(patterns.PLACEHOLDER).to_list()
    known = [span for span in PLACEHOLDERS if pl.Series([span]).str.extract_all(patterns.PLACEHOLDER).to_list() == [[span]]]
    assert len(known) > 25
    for text, theirs in zip(texts, by_filter, strict=True):
        if theirs and theirs[0] in known and f" {theirs[0]} " in text:
            assert Counter(found(text)) == Counter(theirs)


PARTS = st.sampled_from([*PLACEHOLDERS, *TAGS, *ADDRESSES, *PATHS, *NUMBERS, *EMOJI, "<", ">", "&", "%", "{", "}", "⟦", "⟧", "⟦3⟧",
                         " ", "/", "\\", '"', "'", "=", "a", "1", ".", "@", "_", "-", "\n"])  # fmt: skip
TEXTS = st.one_of(st.text(), st.lists(PARTS, max_size=12).map("".join))


@pytest.mark.slow
@given(TEXTS, st.sampled_from(["long", "all"]))
def test_ranges_are_in_order_inside_the_text_and_do_not_overlap(text: str, numbers: str) -> None:
    at = 0
    for start, end, _ in find(text, numbers):  # type: ignore[arg-type]
        assert at <= start < end <= len(text)
        at = end


@pytest.mark.slow
@given(st.one_of(TEXTS, st.text("0123456789AZabz-_. :@/w", max_size=30)), st.sampled_from(["long", "all"]))
def test_the_quick_look_for_signs_overlooks_nothing(text: str, numbers: str) -> None:
    """A bracket before the text makes it pass that look, and changes nothing else."""
    behind = find("⟦ " + text, numbers)  # type: ignore[arg-type]
    assert [(start - 2, end - 2, kind) for start, end, kind in behind] == find(text, numbers)  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.parametrize(
    "part",
    [
        "<", "{", "{{", "{%", "%", "%0", "%(a", "aaaa@", "a", "a.", "<a ", "<a x='", '<a x="', "<a b=", "<!--", "&", "&#1",
        "/", "/a", "/*", "~",
        "../", "0", "1,", "1 000", "A1-", "http://", "http://.", "http://)", "http://(", "__a", "⟦", "⟦1", "$",
        "$a", "\\", "\\\\a\\", "C:\\", "</a>", "<a><b>", "😀\u200d",
        "{a,plural", "{a,plural,", "1%", "1%s", "[X", "[X1", "% ", "${", "{0,", "{0,{", "<a></", "<a></a>",
    ],
)  # fmt: skip
def test_hostile_text_takes_linear_time(part: str) -> None:
    text = (part * 100_000)[:100_000]
    began = time.process_time()
    find(text, "all")
    assert time.process_time() - began < 0.5  # quadratic time would be minutes
