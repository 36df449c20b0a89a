"""`FewWords` keeps the ids of the words of single texts, without the arrays that columns need."""

from collections.abc import Callable, Sequence

from limelight.errors import DataError

REMEMBERED = 200_000  # distinct words kept between calls, about 40 MB
LONGEST = 64  # characters of one that is kept: a text of a script without blanks is a single word, and is not seen again


class FewWords:
    """`segment` gives the ids of words that are new."""

    def __init__(self, segment: Callable[[Sequence[str]], list[list[int]]]) -> None:
        self._segment = segment
        self._ids: dict[str, list[int]] = {}

    def ids_of(self, words: list[str]) -> dict[str, list[int]]:
        """Of distinct words. Several threads may ask: each goes on with the words that it began with."""
        if len(self._ids) > REMEMBERED:
            self._ids = {}
        known = self._ids
        found = {word: known[word] for word in words if word in known}
        if new := [word for word in words if word not in found]:
            made = dict(zip(new, self._segment(new), strict=True))
            known.update((word, ids) for word, ids in made.items() if len(word) <= LONGEST)
            found |= made
        return found


def to_bytes(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise refuse_half_character(error) from None


def refuse_half_character(error: UnicodeEncodeError) -> DataError:
    return DataError(f"a text holds half a character and cannot be written as UTF-8 ({error}); remove it")


def cut_words(text: str, at_spaces: bool) -> list[str]:
    """cut_words("a  b", True) -> ["a", " ", " b"], as `words.split_texts` cuts columns."""
    to_bytes(text)
    if not text or not at_spaces:
        return [text] if text else []
    first, *others = text.split(" ")
    return [first, *(f" {word}" for word in others)]
