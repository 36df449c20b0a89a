"""Regular expressions for Polars match numbers, placeholders, tags, control characters and broken encodings. The first three must survive a
translation unchanged. The syntax is that of Rust's `regex`, which Polars runs.
"""

import unicodedata
from functools import cache


@cache
def digits() -> dict[str, str]:
    """The digits of other scripts, each with ours: a Persian year is the English one."""
    return {sign: str(unicodedata.digit(sign)) for sign in map(chr, range(128, 0x1FFFF)) if unicodedata.category(sign) == "Nd"}


def join_patterns(*patterns: str) -> str:
    """One that matches what any of them does; of several the first."""
    return "|".join(patterns)


# Integers and decimals with the separators of both styles: 1,000.5 and 1.000,5 and 1 000,5 (no-break spaces).
NUMBER = r"\d{1,3}(?: \d{3})+\b(?:[.,]\d+)?|\d[\d.,'\u2019\u00a0\u202f]*"

# What programs fill in, in the notations that catalogues hold.
PLACEHOLDER = join_patterns(
    # C, Python, gettext, dates; a translation may add an ending to %s
    r"%(?:\(\w+\)|\d+\$)?[-+#0']*(?:[^\D0]\d*|\*)?(?:\.(?:\d+|\*))?(?:hh|h|ll|l|q|j|z|t|L)?(?:[sd@fg]|[A-Za-z]\b)",
    r"%L?\d{1,2}\b",  # Qt
    r"%\w{2,}%",  # Windows and Mozilla
    r"\$?\{\{?[\w.:!$ -]*\}\}?",  # {0} {name} ${name} {{name}}
    r"\$\(\w+\)|\$[A-Za-z_]\w*",  # shell and make
    r"@[A-Za-z_]\w*@|__[A-Za-z]\w*?__",
)
MESSAGE_FORMAT = r"\{\s*\w+\s*,\s*(?:plural|select)"  # of ICU: its braces hold text to be translated
ANY_PLACEHOLDER_SIGN = r"[%{$@_]"  # cheap to look for; without one of these there is no placeholder

# Usage texts say <file>, keys are called <Ctrl>, and these are translated: a tag is known by its name, its closing form or its attributes.
KNOWN_TAGS = "a|b|i|u|s|p|br|hr|em|tt|li|ul|ol|dl|dt|dd|td|tr|th|h[1-6]|big|sub|sup|div|pre|img|span|font|code|small|strong|table|center"
TAG = rf"(?i:</?(?:{KNOWN_TAGS})(?:\s[^<>]*)?/?>|</[a-z][\w:.-]*>|<[a-z][\w:.-]*\s[^<>]*=[^<>]*>|<[a-z][\w:.-]*\s*/>)"
TAG_NAME = r"^</?[A-Za-z][\w:.-]*"

CONTROL = r"[\p{Cc}\x{FFFD}\p{Co}\p{Cn}]"  # controls, the sign of a failed decoding, private use, unassigned

# UTF-8 that was once read as Latin-1 or Windows-1252: Ã¤ for ä, â€™ for ’.
_SECOND = r"\x{80}-\x{BF}" + "".join(f"\\x{{{ord(char):X}}}" for char in bytes(range(0x80, 0xA0)).decode("cp1252", "ignore"))
MOJIBAKE = rf"Ã[{_SECOND}]|â[€\x{{201A}}][{_SECOND}]|Â[\x{{A0}}-\x{{BF}}]|Ð[{_SECOND}]Ñ"
