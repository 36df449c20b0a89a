"""Strings that are hard on a translator: what must survive, all classes of Unicode, and units that are pumped.

hostile(Random(1)) -> "one {0}<b>two\u202e..."        short, of all sorts
pumped(Random(1), 2000) -> "a.b-" * 500 + "x"         a unit many times
"""

from random import Random

WORDS = (
    "one",
    "two",
    "twenty-one",
    "three",
    "hundred",
    "Hello",
    "ONE",
    "TWO THREE",
    "Open",
    "file",
    "user",
    "IV",
    "twelve",
)
# Those that nobody may lose: each is found by a plain search, whatever stands around it.
KEPT = (
    "%s", "%d", "%1$s", "%2$d", "%(name)s", "%-5d", "%.2f", "%lu", "%@", "{0}", "{name}", "{{name}}", "${x}", "@X@", "<b>", "</b>",
    "<br/>", '<a href="x">', "</a>", '<x id="1"/>', "&amp;", "&kde;", "http://a.b/c?d=e", "https://example.org/x", "a@b.org",
    "/usr/share/x", "C:\\x\\y.txt", "~/a.log", "12345", "9876543210", "2026-11-16", "192.168.0.1", "DE89370400440532013000", "😀",
    "👩\u200d👩\u200d👧", "🇩🇪", "👍🏽", "1\ufe0f\u20e3",
)  # fmt: skip
SIGNS = (
    "_File", "&File", "~File", "12:30", "1,000.5", "1.000", "$5", "50%", "5 km", "3 pm", "1/2", "Dr.", "z.B.", "...", "!", "?", '"',
    "“", "”", "«", "»", "'", "’", "(", ")", "[", "]", "\n", "\n\n", "\r\n", "\r", "\t", "  ", "-", "--", "—", "\\",
    "\\n", "%", "%%", "{", "}",
    "<", ">", "&", "#", "*", "`", "|", "=", "⟦0⟧", "⟦1⟧", "⟦", "⟧", "▁", "<unk>", "<s>", "</s>", "<pad>", "<0x0A>",
    "{a, plural, one {x} other {y}}",
    "<!-- x -->", "<script>", "]]>", "&nbsp;", "f&uuml;r", "&#39;", "&#0;", "&#x110000;", "[X7X]", "__x__", "$HOME",
    "%n", "%1", "{0", "<b", "<a b='",
)  # fmt: skip
ODD = (
    "\u0301", "\u0300\u0301\u0302", "\u202e", "\u202a", "\u2066", "\u2069", "\u200f", "\u200b", "\u200c", "\u200d", "\u2060", "\ufeff", "\ufe0f", "\ufe0e",
    "\U000e0100", "\U0001f3fd", "🇩", "\U000e0041\U000e007f", "\ue000", "\U000f0000", "\U0010ffff", "\ufffd", "\ufffe", "\x00", "\x01", "\x08", "\x0b",
    "\x0c", "\x1b[31m", "\x1c", "\x7f", "\x85", "\x9f", "\u2028", "\u2029", "\u00a0", "\u3000", "\u00ad", "ß", "ẞ", "İ", "ı", "ﬁ", "ﷺ", "Ǆ", "中文", "字", "ไทย",
    "हिन्दी", "한국어", "한", "עברית", "العربية", "𝕳", "𓀀", "①", "Ⅳ", "²", "½", "٣", "๓", "ŉ", "ǰ", "ΐ", "\u1ab0",
    "\u20dd", "\u180e", "\u061c", "\u2581\u2581",
)  # fmt: skip
SORTS = (WORDS, WORDS, KEPT, SIGNS, ODD)
JOINS = ("", "", " ", " ", " ", ". ", ", ", "\n")


def hostile(random: Random, most: int = 14) -> str:
    kind = random.random()
    if kind < 0.04:
        return "".join(_any_sign(random) for _ in range(random.randint(0, 40)))
    if kind < 0.10:
        return pumped(random, random.choice((20, 60, 200)))
    if kind < 0.13:
        return nested(random, random.randint(1, 30))
    text = "".join(random.choice(random.choice(SORTS)) + random.choice(JOINS) for _ in range(random.randint(1, most)))
    return text.upper() if kind > 0.95 else text


def pumped(random: Random, size: int) -> str:
    """Once or twice something, many times a unit of one to four, and something that does not fit."""
    parts = [random.choice(random.choice(SORTS)) for _ in range(random.choice((1, 1, 2, 2, 3, 4)))]
    if random.random() < 0.25:
        parts = [random.choice(".,-_ /:&<>{}()[]%$@#'\"!?1aA\n\\|~*+=;^`") for _ in range(random.randint(1, 3))]
    unit = "".join(parts)
    first = random.choice(("", "", "a ", "HELLO WORLD ", "<", "1", random.choice(SIGNS)))
    last = random.choice(("", "", "x", "!", " ", ">", "1", "\n", random.choice(ODD)))
    return first + (unit * (size // len(unit) + 1))[:size] + last


def nested(random: Random, depth: int) -> str:
    opens, closes = random.choice(
        (("(", ")"), ("<b>", "</b>"), ("{", "}"), ("{{", "}}"), ("[", "]"), ("“", "”"), ("<g id='1'>", "</g>"), ("⟦", "⟧"), ("«", "»"))
    )  # fmt: skip
    return opens * depth + random.choice(WORDS) + closes * random.choice((depth, depth, depth - 1, 0))


def _any_sign(random: Random) -> str:
    ranges = ((1, 0x250), (0x250, 0xD7FF), (0xE000, 0xFFFF), (0x1F000, 0x1FAFF), (0x10000, 0x10FFFF))
    return chr(random.randrange(*random.choice(ranges)))
