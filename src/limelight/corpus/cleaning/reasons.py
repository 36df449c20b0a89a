"""`Reason` lists why a pair is dropped, in the order in which the checks are asked. The first that objects gives the reason."""

from enum import IntEnum
from typing import Final


class Reason(IntEnum):
    """Each reason has a number, and 0 means kept. The numbers live in temporary files only; manifests and reports use the names."""

    KEPT = 0
    MALFORMED = 1
    FUZZY = 2
    EMPTY = 3
    TOO_LONG = 4
    BROKEN_TEXT = 5
    LENGTH_RATIO = 6
    COPIED = 7
    WRONG_SCRIPT = 8
    PLACEHOLDERS = 9
    MARKUP = 10
    NUMBERS = 11
    REPETITION = 12
    WRONG_LANGUAGE = 13
    LEAK = 14
    DUPLICATE = 15
    NEAR_DUPLICATE = 16
    CONFLICT = 17

    @property
    def label(self) -> str:
        return self.name.lower()

    @property
    def setting(self) -> str:
        """What decides about it: all but these have a filter of their name."""
        return _DECIDED_ELSEWHERE.get(self, f"filters.{self.label}")


_DECIDED_ELSEWHERE: Final = {
    Reason.LEAK: "held_out.leaks",
    Reason.DUPLICATE: "dedup.exact",
    Reason.NEAR_DUPLICATE: "dedup.near",
    Reason.CONFLICT: "dedup.targets_per_source",
}

EXPLAINED: Final = {
    Reason.MALFORMED: "no pair could be read: missing column, invalid JSON, a unit without one of the languages",
    Reason.FUZZY: "marked as out of date by its translator",
    Reason.EMPTY: "nothing but spaces on one side",
    Reason.TOO_LONG: "more characters than filters.longest",
    Reason.BROKEN_TEXT: "invalid UTF-8, control characters, or text once read in the wrong encoding",
    Reason.LENGTH_RATIO: "one side much longer than the other",
    Reason.COPIED: "the target is the source again",
    Reason.WRONG_SCRIPT: "letters of a script the language is not written in, or letters on one side only",
    Reason.PLACEHOLDERS: "placeholders such as %s or {name} differ",
    Reason.MARKUP: "tags such as <b> differ",
    Reason.NUMBERS: "numbers of two or more digits differ",
    Reason.REPETITION: "one phrase again and again",
    Reason.WRONG_LANGUAGE: "identified as another language",
    Reason.LEAK: "the same as, or nearly the same as, a pair of the validation or test set",
    Reason.DUPLICATE: "the same pair occurred before",
    Reason.NEAR_DUPLICATE: "the same pair but for case, accents, digits and punctuation occurred before",
    Reason.CONFLICT: "its source has more frequent translations enough",
}
