"""`read_facts` reads from a SentencePiece model what the library does not tell, without protobuf.

Field numbers are those of sentencepiece_model.proto, which promises to keep them.
"""

from collections.abc import Iterator
from dataclasses import dataclass

ALGORITHMS = {1: "unigram", 2: "bpe", 3: "word", 4: "char"}
USER_DEFINED = 4


@dataclass(frozen=True)
class PieceModelFacts:
    algorithm: str
    keeps_characters: bool  # no table of replacements, such as NFKC
    whole: tuple[str, ...]  # user-defined pieces, which are never cut


def read_facts(model: bytes) -> PieceModelFacts:
    """Raises IndexError if the file ends too early."""
    algorithm, keeps_characters, whole = "unigram", True, []
    for number, value in fields(model):
        if number == 1 and value[-2:] == bytes([3 << 3, USER_DEFINED]):  # a piece whose last field is its type
            whole += [content.decode() for inner, content in fields(value) if inner == 1]
        if number == 2:  # trainer_spec; its field 3 is model_type
            algorithm = next((ALGORITHMS[kind[0]] for inner, kind in fields(value) if inner == 3), algorithm)
        if number == 3:  # normalizer_spec; its field 2 is the table of replacements
            keeps_characters = not any(inner == 2 and table for inner, table in fields(value))
    return PieceModelFacts(algorithm, keeps_characters, tuple(whole))


def fields(message: bytes) -> Iterator[tuple[int, bytes]]:
    """Number and content of each field of a protobuf message; small numbers as one byte, others as they lie there."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        number, kind = divmod(key, 8)
        if kind == 0:
            begin = at
            _, at = _varint(message, at)
            yield number, message[begin:at]
            continue
        length = {1: 8, 5: 4}.get(kind)
        if length is None:
            length, at = _varint(message, at)
        yield number, message[at : at + length]
        at += length


def _varint(message: bytes, at: int) -> tuple[int, int]:
    """A number in groups of 7 bits, lowest first, and where it ends. None has more than 64 bits: time would grow with their square."""
    value = shift = 0
    while shift < 70:
        byte = message[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at
    raise IndexError("a number has more than 64 bits")
