"""A text is cut into the pieces that a model reads, each with its place in the text as it was given:

    locate_pieces(tokenizer, ("spaces",), "two  cats")  ->  "two cats", [▁two 0-3, ▁cat 3-8, s 8-9]

Normalization may remove, join and replace characters, so each character that is left remembers where it came from. A piece covers the
space before it. One that stands for no character of the text, as a first ▁, has an empty place; the bytes of a character that has no
piece of its own each have the place of the whole character.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from limelight.text.normalize import Step, is_invisible, is_white, may_compose, normalize_text
from limelight.text.pieces.few_words import cut_words
from limelight.text.pieces.model_file import fields
from limelight.text.pieces.tokenizer import Tokenizer

_SURFACE_BEGIN, _SURFACE_END = 4, 5  # of sentencepiece.proto, in bytes


@dataclass(frozen=True)
class PieceAt:
    text: str
    id: int
    begin: int
    end: int


@dataclass(frozen=True)
class Character:
    """A character after normalization knows the stretch of the given text that it stands for."""

    text: str
    begin: int
    end: int


def locate_pieces(tokenizer: Tokenizer, steps: Sequence[Step], text: str) -> tuple[str, list[PieceAt]]:
    """The text as the model reads it, and its pieces. Blank text has none: there is nothing to translate."""
    kept = characters(text, steps)
    tidy = "".join(each.text for each in kept)
    if not tidy or tidy.isspace():
        return tidy, []
    words = cut_words(tidy, tokenizer.by_words)
    result, at = list[PieceAt](), 0
    for word, bare, ids in zip(words, tokenizer.bare_words(words), tokenizer.segment_words(words), strict=True):
        places = _places(tokenizer, bare, len(word) - len(bare)) or [(0, len(word))]
        for number, piece, (begin, end) in zip(ids, tokenizer.pieces(ids), places, strict=True):
            result.append(PieceAt(piece, number, *_map_back(kept, at + begin, at + end)))
        at += len(word)
    return tidy, result


def characters(text: str, steps: Sequence[Step]) -> list[Character]:
    """What `normalize` makes of a text, character by character."""
    kept = [Character(sign, at, at + 1) for at, sign in enumerate(text)]
    if "invisible" in steps:
        kept = [each for each in kept if not is_invisible(each.text)]
    clusters = list[list[Character]]()
    for each in kept:
        if clusters and "nfc" in steps and may_compose(each.text):
            clusters[-1].append(each)
        else:
            clusters.append([each])
    own: list[Step] = [step for step in steps if step in ("nfc", "quotes")]
    changed = [normalize_text("".join(each.text for each in cluster), own) for cluster in clusters]
    result = [each for cluster, new in zip(clusters, changed, strict=True) for each in _compose(cluster, new)]
    return _single_spaces(result) if "spaces" in steps else result


def _compose(cluster: list[Character], new: str) -> list[Character]:
    """Where a cluster has as many characters as before each keeps its own place; else all have the place of the cluster."""
    if len(new) == len(cluster):
        return [Character(sign, each.begin, each.end) for sign, each in zip(new, cluster, strict=True)]
    return [Character(sign, cluster[0].begin, cluster[-1].end) for sign in new]


def _single_spaces(given: list[Character]) -> list[Character]:
    """A run of blanks is one space with the place of the run; none at the ends."""
    result = list[Character]()
    for each in given:
        if not is_white(each.text):
            result.append(each)
        elif result and result[-1].text == " ":
            result[-1] = Character(" ", result[-1].begin, each.end)
        elif result:
            result.append(Character(" ", each.begin, each.end))
    return result[:-1] if result and result[-1].text == " " else result


def _places(tokenizer: Tokenizer, bare: str, space: int) -> list[tuple[int, int]]:
    """Begin and end of each piece of a word in characters, the space before the word counted; empty for a word of nothing but it."""
    raw = bare.encode()
    # Bytes that go on with a character count nothing, so the sum at a byte is the number of characters before it.
    before = [0, *accumulate((byte & 0xC0) != 0x80 for byte in raw)]
    found = list[tuple[int, int, bool]]()
    for number, piece in fields(tokenizer.processor.encode(bare, out_type="serialized_proto")):
        if number != 2:
            continue
        parts = dict(fields(piece))
        begin, end = _number(parts.get(_SURFACE_BEGIN, b"")), _number(parts.get(_SURFACE_END, b""))
        byte = begin == end and tokenizer.processor.is_byte(_number(parts.get(2, b"")))
        found.append((space + before[begin], space + before[end], byte))
    result = list[tuple[int, int]]()
    for begin, end, byte in reversed(found):
        result.append((begin, result[-1][1] if byte and result else end))
    if result and space:
        result[-1] = (0, result[-1][1])
    return result[::-1]


def _map_back(kept: Sequence[Character], begin: int, end: int) -> tuple[int, int]:
    if begin < end:
        return kept[begin].begin, kept[end - 1].end
    at = kept[begin].begin if begin < len(kept) else kept[-1].end
    return at, at


def _number(raw: bytes) -> int:
    """A varint of protobuf."""
    return sum((byte & 127) << (7 * at) for at, byte in enumerate(raw))
