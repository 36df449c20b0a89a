"""An attempt is whole before it begins, holds a fifth out for good, and goes on after a kill."""

import json
import sys
from pathlib import Path

import pytest

from limelight.bundle.versions import LEARNT, RUN, LearntHistory, write_history
from limelight.errors import DataError
from limelight.learning.attempt import (
    FEWEST,
    HELD,
    PLAN,
    TAUGHT,
    begin_attempt,
    clear_up,
    count_new,
    find_unfinished,
    forget_unfinished,
    goes_on,
    is_held_out,
    read_corrections,
)
from limelight.learning.gate import Sifted

sys.path.insert(0, str(Path(__file__).parents[1]))
from learning_versions import make_version

PAIR = ("en", "de")


def draw(count: int) -> list[tuple[str, str]]:
    return [(f"source {number}", f"Quelle {number}") for number in range(count)]


def test_a_fifth_is_held_out_and_stays_so() -> None:
    share = sum(is_held_out(f"source {number}") for number in range(5_000)) / 5_000
    assert 0.17 < share < 0.23
    assert is_held_out("source 1") == is_held_out("source 1")


def test_the_plan_is_on_disk_and_both_parts_are_read_again(tmp_path: Path) -> None:
    pairs = draw(200)
    plan = begin_attempt(tmp_path, Sifted(pairs, [(("a", "a"), "copied")]), PAIR, 2.0)
    assert plan is not None
    assert (plan.number, plan.parent, plan.refused) == (1, 0, {"copied": 1})
    place = tmp_path / LEARNT / "1"
    taught, held = (read_corrections(place / name, PAIR) for name in (TAUGHT, HELD))
    assert sorted(taught + held) == sorted(pairs)
    assert all(is_held_out(source) for source, _ in held)
    assert not any(is_held_out(source) for source, _ in taught)
    assert find_unfinished(tmp_path) == plan


def test_what_the_last_attempt_had_is_not_new(tmp_path: Path) -> None:
    pairs = draw(200)
    assert count_new(tmp_path, pairs) == 200
    begin_attempt(tmp_path, Sifted(pairs, [(("a", "a"), "copied")]), PAIR, 2.0)
    write_history(tmp_path, LearntHistory(versions=(make_version(1, kept=False),)))
    assert count_new(tmp_path, pairs) == 0
    assert count_new(tmp_path, [*pairs, ("a", "a")]) == 0  # refused before, refused again
    assert count_new(tmp_path, [*pairs, ("b", "B")]) == 1


def test_an_attempt_goes_on_only_if_it_is_what_is_asked_for(tmp_path: Path) -> None:
    pairs = draw(200)
    plan = begin_attempt(tmp_path, Sifted(pairs[:-1], [(pairs[-1], "copied")]), PAIR, 2.0)
    assert plan is not None
    assert goes_on(tmp_path, plan, pairs, 2.0)
    assert goes_on(tmp_path, plan, [*pairs, ("new", "neu")], 2.0)  # it is learnt the next time
    assert not goes_on(tmp_path, plan, pairs[1:], 2.0)  # somebody deleted one, or named another file
    assert not goes_on(tmp_path, plan, pairs, 3.0)


def test_too_few_make_no_attempt(tmp_path: Path) -> None:
    assert begin_attempt(tmp_path, Sifted(draw(FEWEST - 1), []), PAIR, 2.0) is None
    assert not (tmp_path / LEARNT / "1").exists()


def test_half_an_attempt_is_none(tmp_path: Path) -> None:
    """A kill before the rename leaves a folder of another name, which nobody takes for an attempt."""
    (tmp_path / LEARNT / ".1.abcd.part").mkdir(parents=True)
    (tmp_path / LEARNT / ".1.abcd.part" / PLAN).write_text("{")
    assert find_unfinished(tmp_path) is None
    plan = begin_attempt(tmp_path, Sifted(draw(200), []), PAIR, 2.0)
    assert plan is not None
    assert plan.number == 1


def test_texts_of_the_attempt_before_are_not_kept(tmp_path: Path) -> None:
    begin_attempt(tmp_path, Sifted(draw(200), []), PAIR, 2.0)
    write_history(tmp_path, LearntHistory(current=1, versions=(make_version(1),)))
    plan = begin_attempt(tmp_path, Sifted(draw(300), []), PAIR, 2.0)
    assert plan is not None
    assert (plan.number, plan.parent) == (2, 1)
    assert count_new(tmp_path, draw(200)) == 0  # until the next one has ended, this one tells what is new
    write_history(tmp_path, LearntHistory(current=1, versions=(make_version(1), make_version(2, kept=False))))
    clear_up(tmp_path)
    assert (tmp_path / LEARNT / "2" / TAUGHT).is_file()
    assert [path.name for path in (tmp_path / LEARNT / "1").iterdir()] == [PLAN]


def test_what_is_over_leaves_what_is_of_use(tmp_path: Path) -> None:
    for number in (1, 2):
        for name in ("bundle", "checkpoints", "best"):
            (tmp_path / LEARNT / str(number) / RUN / name).mkdir(parents=True)
    write_history(tmp_path, LearntHistory(current=1, versions=(make_version(1), make_version(2, kept=False))))
    clear_up(tmp_path)
    assert [path.name for path in (tmp_path / LEARNT / "1" / RUN).iterdir()] == ["bundle"]
    assert not (tmp_path / LEARNT / "2" / RUN).exists()


def test_an_unfinished_attempt_can_be_forgotten(tmp_path: Path) -> None:
    begin_attempt(tmp_path, Sifted(draw(200), []), PAIR, 2.0)
    forget_unfinished(tmp_path)
    assert find_unfinished(tmp_path) is None


@pytest.mark.parametrize(
    "line", [{"source": "one", "correction": "eins"}, {"translation": {"en": "one", "de": "eins"}}, {"source": "one", "target": "eins"}]
)
def test_corrections_are_read_in_each_shape(tmp_path: Path, line: dict[str, object]) -> None:
    (tmp_path / "c.jsonl").write_text(json.dumps(line) + "\n")
    assert read_corrections(tmp_path / "c.jsonl", PAIR) == [("one", "eins")]


def test_lines_without_a_correction_are_named(tmp_path: Path) -> None:
    (tmp_path / "c.jsonl").write_text('{"source": "one", "correction": "eins"}\n{\n{"source": 1, "correction": "eins"}\n')
    with pytest.raises(DataError, match=r"no correction stands in line 2, 3; mend"):
        read_corrections(tmp_path / "c.jsonl", PAIR)


def test_a_file_may_have_lines_of_both_shapes(tmp_path: Path) -> None:
    lines = [
        {"source": "one", "correction": "eins"},
        {"translation": {"en": "two", "de": "zwei"}},
        {"source": "six", "correction": "sechs"},
    ]
    for some in (lines, lines[1:], lines[1:2] + lines[:1]):
        (tmp_path / "c.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in some))
        assert {pair[1] for pair in read_corrections(tmp_path / "c.jsonl", PAIR)} <= {"eins", "zwei", "sechs"}
        assert len(read_corrections(tmp_path / "c.jsonl", PAIR)) == len(some)


def test_an_empty_file_has_none_and_a_missing_one_is_told(tmp_path: Path) -> None:
    (tmp_path / "c.jsonl").write_bytes(b"")
    assert read_corrections(tmp_path / "c.jsonl", PAIR) == []
    with pytest.raises(DataError, match="is no file"):
        read_corrections(tmp_path / "d.jsonl", PAIR)
