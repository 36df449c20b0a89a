"""What must survive a translation unchanged: numbers, placeholders, tags. Regular expressions of Rust's `regex`, which Polars runs."""

# Integers and decimals with the separators of both styles: 1,000.5 and 1.000,5 and 1 000,5 (no-break spaces).
NUMBER = r"\d[\d.,'\x{2019}\x{A0}\x{202F}]*"

# What programs fill in, in the notations that catalogues hold.
PLACEHOLDER = "|".join(
    (
        # C, Python, gettext; a translation may add an ending to %s
        r"%(?:\(\w+\)|\d+\$)?[-+#0']*(?:\d+|\*)?(?:\.(?:\d+|\*))?(?:hh|h|ll|l|q|j|z|t|L)?(?:[sd]|[iouxXeEfFgGaAcSpn@]\b)",
        r"%L?\d{1,2}\b",  # Qt
        r"%\w{2,}%",  # Windows and Mozilla
        r"\$?\{\{?[\w.:!$ -]*\}\}?",  # {0} {name} ${name} {{name}}
        r"\$\(\w+\)|\$[A-Za-z_]\w*",  # shell and make
        r"@[A-Za-z_]\w*@|__\w+__",
    )
)
ANY_PLACEHOLDER_SIGN = r"[%{$@_]"  # cheap to look for; without one of these there is no placeholder

# Usage texts say <file>, keys are called <Ctrl>, and these are translated: a tag is known by its name, its closing form or its attributes.
_KNOWN = "a|b|i|u|s|p|br|hr|em|tt|li|ul|ol|dl|dt|dd|td|tr|th|h[1-6]|big|sub|sup|div|pre|img|span|font|code|small|strong|table|center"
TAG = rf"(?i:</?(?:{_KNOWN})(?:\s[^<>]*)?/?>|</[a-z][\w:.-]*>|<[a-z][\w:.-]*\s[^<>]*=[^<>]*>|<[a-z][\w:.-]*\s*/>)"
TAG_NAME = r"^</?[A-Za-z][\w:.-]*"

CONTROL = r"[\p{Cc}\x{FFFD}\p{Co}\p{Cn}]"  # controls, the sign of a failed decoding, private use, unassigned

# UTF-8 that was once read as Latin-1 or Windows-1252: Ã¤ for ä, â€™ for ’.
_AFTER_LEAD = r"\x{80}-\x{BF}\x{201E}\x{2013}\x{0153}\x{0178}\x{2122}\x{201C}\x{201D}\x{02DC}"
MOJIBAKE = rf"Ã[{_AFTER_LEAD}]|â€[{_AFTER_LEAD}]|Â[\x{{A0}}-\x{{BF}}]|Ð[\x{{80}}-\x{{BF}}]Ñ"
