"""The tools that measure the tests: mutants are made as they say, and coverage is added up by room."""

import ast
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from coverage_gate import Count, by_file, verdict
from mutation_score import PACKAGE, drawn, suites_of, summary
from mutations import applied, mutations

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("x = a < b\n", ["x = (a <= b)\n"]),
        ("x = a is None\n", ["x = (a is not None)\n"]),
        ("x = (a - b) * c\n", ["x = ((a - b) / c)\n", "x = ((a + b)) * c\n"]),
        ("x = a and b or c\n", ["x = ((a and b) and c)\n", "x = (a or b) or c\n"]),
        ("if not a:\n    pass\n", ["if (a):\n    pass\n"]),
        ("x = f(k=True)\n", ["x = f(k=False)\n"]),
        ("x = 3\n", ["x = 4\n"]),
        ("def f(x):\n    return x\n", ["def f(x):\n    return None\n"]),
        ("é = a < b  # ü\n", ["é = (a <= b)  # ü\n"]),
        ("x = (\n    a\n    + b\n)\n", ["x = (\n    (a - b)\n)\n"]),
    ],
)
def test_one_place_is_changed_and_all_else_stays(source: str, expected: list[str]) -> None:
    assert sorted(applied(source, each) for each in mutations("a.py", source)) == sorted(expected)


@pytest.mark.parametrize(
    "source",
    ['"""A docstring."""\n', "def f(x: Literal[3]) -> Literal[4]:\n    pass\n", "raise ValueError(3 + 4)\n", "x = f'{3}'\n",
     "x = 'a' + b\n", "x = int | None\n", "x: int = Field(default=3)\n", "if TYPE_CHECKING:\n    x = 3\n"],
)  # fmt: skip
def test_what_changes_nothing_or_is_noticed_by_everything_is_left_alone(source: str) -> None:
    assert mutations("a.py", source) == []


@pytest.mark.slow
def test_every_mutant_of_ours_is_python_and_another_program() -> None:
    some = drawn(200, seed=1)
    assert len({each.name for each in some}) == len(some) == 200
    for mutation in some:
        source = (PACKAGE / mutation.file).read_bytes().decode()
        changed = applied(source, mutation)
        assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(source)), mutation.name


@pytest.mark.slow
def test_the_same_seed_draws_the_same_and_a_longer_list_begins_with_the_shorter() -> None:
    assert drawn(20, 3) == drawn(40, 3)[:20]
    assert drawn(20, 3) != drawn(20, 4)


def test_the_suites_of_a_file_come_nearest_first() -> None:
    found = suites_of("decoding/beam.py")
    assert found[0] in [path for path in found if "limelight.decoding.beam" in (ROOT / path).read_bytes().decode() or "test_beam" in path]
    assert all((ROOT / path).is_file() for path in found)
    assert all(suites_of(each.file) for each in drawn(200, seed=1))


def test_the_score_counts_what_survived() -> None:
    results = [
        {"mutant": name, "outcome": outcome} for name, outcome in [("a", "killed"), ("b", "survived"), ("c", "timeout"), ("d", "killed")]
    ]
    lines = summary(results)
    assert lines[0] == "survived: b"
    assert lines[-1].startswith("raw score 75.0 %: 3 of 4")


def test_coverage_is_added_up_by_room() -> None:
    def file(covered: int, possible: int) -> dict[str, dict[str, int]]:
        return {"summary": {"covered_lines": covered, "num_statements": possible, "covered_branches": 0, "num_branches": 0}}

    report = {
        "files": {
            "src/limelight/model/a.py": file(90, 100),
            "/x/src/limelight/cli/b.py": file(80, 100),
            "tests/c.py": file(0, 9),
        }
    }
    files = by_file(report)
    assert files == {"model/a.py": Count(90, 100), "cli/b.py": Count(80, 100)}
    _, low = verdict(files)
    assert low == ["model/: 90.00 % is below 95 %"]
    assert verdict({"cli/b.py": Count(84, 100)})[1] == ["all: 84.00 % is below 85 %"]
