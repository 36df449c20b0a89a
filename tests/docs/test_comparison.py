"""The table of scores in docs/comparison.md and in the README is what the stored translations give."""

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "benchmarks"), str(ROOT / "tests" / "evaluation")]
from stored_outputs import needs_data, row, rows  # noqa: E402

import comparison  # noqa: E402

PAGE = (ROOT / "docs" / "comparison.md").read_text("utf-8").split("<!-- scores -->")[1].split("<!-- end -->")[0]
SETS = {"flores200": "flores200-devtest"}


def cells() -> list[tuple[str, str, str, float, float]]:
    """System, set, direction, BLEU and chrF of each cell of the page that is not empty."""
    head, _, *lines = ([cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.strip().split("\n"))
    found = []
    for system, *scores in lines:
        for column, score in zip(head[1:], scores, strict=True):
            if score:
                test_set, direction = column.split()
                bleu, chrf = map(float, score.split(" / "))
                found.append((system.split()[0], SETS.get(test_set, test_set), direction, bleu, chrf))
    return found


@needs_data
def test_the_rows_of_others_are_every_stored_score_and_no_other() -> None:
    theirs = [cell for cell in cells() if not cell[0].startswith("**")]
    assert {cell[:3] for cell in theirs} == {
        (each.system, each.test_set, each.direction) for each in rows() if each.system in comparison.SYSTEMS
    }
    for system, test_set, direction, bleu, chrf in theirs:
        stored = row(test_set, direction, system)
        assert (bleu, chrf) == (pytest.approx(stored.bleu, abs=0.0501), pytest.approx(stored.chrf, abs=0.0501)), (
            system,
            test_set,
            direction,
        )


def test_the_readme_says_the_same() -> None:
    section = (ROOT / "README.md").read_text("utf-8").split("## How good it is")[1].split("\n## ")[0]
    told = set(re.findall(r"\d+\.\d / \d+\.\d\b(?!\d)", section.replace("45.2 / 69.0, published", "")))
    ours = {"24.3 / 46.0", "40.3 / 64.4"}  # of captions; the table has none
    assert told - ours == told & {f"{bleu} / {chrf}" for *_, bleu, chrf in cells()} and len(told) >= 5


@needs_data
@pytest.mark.slow
def test_between_two_roundings_the_page_has_what_the_command_prints() -> None:
    """Stored scores have two digits: of 66.55 they cannot tell whether it is 66.5 or 66.6."""
    page = {cell[:3]: f"{cell[3]} / {cell[4]}" for cell in cells()}
    stored = [each for each in rows() if each.system in comparison.SYSTEMS]
    between = [each for each in stored if {round(100 * each.bleu) % 10, round(100 * each.chrf) % 10} & {5}]
    assert between
    for each in between:
        assert comparison.cell(each, comparison.read_parallel([each.output])[0]) == page[each.system, each.test_set, each.direction]


@needs_data
@pytest.mark.slow
def test_the_command_scores_what_is_stored() -> None:
    [stored] = [each for each in rows() if (each.test_set, each.direction, each.system) == ("flores200-devtest", "en-is", "nllb")]
    scores = comparison.scores_of([stored], ["en-is"], [])
    assert comparison.table(scores, ["en-is"]).split("\n")[2] == "| nllb | 17.5 / 45.4 |"
