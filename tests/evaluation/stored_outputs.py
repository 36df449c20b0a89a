"""Outputs of real systems with their recorded scores, and the references they belong to: LIMELIGHT_DATA/system-outputs."""

import csv
import os
from dataclasses import dataclass
from pathlib import Path

import pytest

DATA = os.environ.get("LIMELIGHT_DATA")
needs_data = pytest.mark.skipif(DATA is None, reason="LIMELIGHT_DATA is not set: no outputs of real systems")
FLORES = {"de": "deu_Latn", "is": "isl_Latn", "en": "eng_Latn"}


@dataclass(frozen=True)
class Row:
    """A line of scores.tsv."""

    test_set: str
    direction: str
    system: str
    lines: int
    bleu_recorded: float
    bleu: float
    chrf: float

    @property
    def target(self) -> str:
        return self.direction.split("-")[1]

    @property
    def output(self) -> str:
        return str(folder() / "system-outputs" / f"{self.test_set}.{self.direction}.{self.system}.{self.target}.gz")

    def side(self, language: str) -> str:
        """Source or reference. newstest2018 is one set, stored as de-en, that serves both directions."""
        if self.test_set.startswith("flores200"):
            return str(folder() / "flores200" / f"devtest.{FLORES[language]}.gz")
        pair = "de-en" if self.test_set == "newstest2018" else self.direction
        return str(folder() / "wmt-news" / f"{self.test_set}.{pair}.{language}.gz")

    @property
    def source(self) -> str:
        return self.side(self.direction.split("-")[0])

    @property
    def reference(self) -> str:
        return self.side(self.target)


def folder() -> Path:
    assert DATA is not None
    return Path(DATA)


def rows() -> list[Row]:
    if DATA is None:
        return []
    table = csv.reader((folder() / "system-outputs" / "scores.tsv").read_bytes().decode().split("\n")[1:], delimiter="\t")
    return [
        Row(test_set, direction, system, int(lines), float(recorded), float(bleu), float(chrf))
        for test_set, direction, system, lines, recorded, _, bleu, chrf in (row for row in table if row)
    ]


def row(test_set: str, direction: str, system: str) -> Row:
    return next(each for each in rows() if (each.test_set, each.direction, each.system) == (test_set, direction, system))
