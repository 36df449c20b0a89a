"""Texts whose right translation is known: number words, as tests/bundles/format-1 has learnt to translate them.

It is right in 999 of 1,000 cases. Each text is a number, so each text is a tag that its answer must carry, in the other language.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from random import Random

from serve_client import Answer, request

BUNDLE = Path(__file__).parents[1] / "tests" / "bundles" / "format-1"
ENGLISH = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
GERMAN = ("null", "eins", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun")
MEANING = dict(zip(ENGLISH, GERMAN, strict=True))


def words(number: int, digits: int = 5) -> str:
    """words(42, 3) -> "zero four two"."""
    return " ".join(ENGLISH[int(digit)] for digit in f"{number:0{digits}d}")


def in_german(text: str) -> str:
    return " ".join(MEANING[word] for word in text.split(" "))


def drawn(count: int, seed: int = 1) -> list[str]:
    """All different."""
    return [words(number) for number in Random(seed).sample(range(100_000), count)]


def native(texts: Sequence[str], **options: object) -> bytes:
    """A request to our own API."""
    return request("/api/v1/translate", json.dumps({"text": list(texts), **options}).encode())


def translations(answer: Answer) -> list[str]:
    return [result["text"] for result in json.loads(answer.body)["results"]]
