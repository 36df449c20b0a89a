"""Cividis is a colour scale that people who see no red or no green see like others: from blue to yellow,
even in lightness (Nuñez, Anderton and Renslow 2018).

What is masked is no small value: it is hatched, never a colour of the scale.
"""

from typing import Final

# Every twelfth of the scale; between them in straight lines, which is off by less than 3 % of any channel.
_SCALE: Final = "00224e 003170 2a3f6d 434e6c 575d6d 6a6c71 7d7c78 918b78 a59c74 bcae6c d2c060 e9d34e fee838"
_ANCHORS: Final = tuple(bytes.fromhex(each) for each in _SCALE.split())
INK: Final = "#1a1a1a"
QUIET: Final = "#595959"  # 7 : 1 on white
RULE: Final = "#d0d0d0"
PAPER: Final = "#ffffff"
SPOT: Final = "#d55e00"  # vermilion of Okabe and Ito: what is picked out, always with a line or a word beside it
LINKS: Final = "#0072b2"  # their blue


def cividis(value: float) -> str:
    place = min(max(value, 0.0), 1.0) * (len(_ANCHORS) - 1)
    at = min(int(place), len(_ANCHORS) - 2)
    share = place - at
    low, high = _ANCHORS[at], _ANCHORS[at + 1]
    return "#" + "".join(f"{round(a + share * (b - a)):02x}" for a, b in zip(low, high, strict=True))


def readable_on(colour: str) -> str:
    """Black or white, whichever has more contrast with it: at least 4.5 : 1, whatever the colour."""
    return max(("#000000", PAPER), key=lambda ink: contrast(ink, colour))


def contrast(one: str, other: str) -> float:
    """Of WCAG 2: contrast("#000000", "#ffffff") -> 21.0"""
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _luminance(colour: str) -> float:
    parts = (part / 255 for part in bytes.fromhex(colour[1:]))
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
