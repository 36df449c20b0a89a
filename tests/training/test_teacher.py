"""A teacher: its pairs are whole or absent and the same after a stop, its noise comes first, and its student says where it comes from."""

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[1] / "corpus"))
from prepare_command import here

import tagged_bundle
from limelight.bundle import read, write
from limelight.errors import ConfigError, DataError
from limelight.model.config import ModelConfig
from limelight.model.transformer import Transformer
from limelight.training.recipe import teacher
from limelight.training.recipe.teacher import NOISE, TeacherWork, add_noise, choose_nearest, name_teachers, open_teachers
from limelight.training.run_folder import TRANSLATIONS
from limelight.translator import Translator

STORED = Path(__file__).parents[1] / "bundles" / "format-1"  # number words, en to de
DIRECTION = ("en", "de")
LINES = ["one two", "", "three four five", "six", "seven eight nine one two", "x" * 1501, "nine", "two two", "five ⟦0⟧ six"]


@pytest.fixture(autouse=True)
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(teacher, "SHARD", 4)


def asked(folder: Path, **more: Any) -> TeacherWork:
    path = folder / "text.en"
    if not path.exists():
        path.write_bytes("\n".join([*LINES, ""]).encode())
    return TeacherWork(**{"folder": folder / "run", "teachers": [STORED], "direction": DIRECTION, "text": str(path), **more})


def load() -> Translator:
    return open_teachers([STORED], DIRECTION, threads=1)


def rows(work: TeacherWork) -> list[dict[str, str]]:
    files = sorted(work.translations.iterdir())
    return [json.loads(line) for path in files for line in path.read_bytes().split(b"\n") if line]


def test_pairs_stand_in_the_order_of_the_text_without_lines_that_training_would_drop(tmp_path: Path) -> None:
    work, heard = asked(tmp_path), []
    work.go(load, lambda *told: heard.append(told))
    assert [path.name for path in sorted(work.translations.iterdir())] == ["00000.jsonl", "00001.jsonl", "00002.jsonl"]
    assert [row["source"] for row in rows(work)] == [line for line in LINES if line and len(line) < 1500]
    assert rows(work)[1] == {"source": "three four five", "target": "drei vier fünf"}
    assert heard == [(0, 3), (1, 3), (2, 3), (3, 3)]


def test_a_teacher_that_was_stopped_translates_only_what_is_missing_and_says_the_same(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    straight, stopped = asked(tmp_path / "a", noise=3), asked(tmp_path / "b", noise=3)
    straight.go(load, lambda *_: None)

    def stop(done: int, total: int) -> None:
        if done == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped.go(load, stop)
    first = stopped.translations / "00000.jsonl"
    assert [path.name for path in stopped.translations.iterdir()] == ["00000.jsonl"]
    before, heard = first.stat().st_mtime_ns, []
    stopped.go(load, lambda *told: heard.append(told))
    assert heard[-1] == (2, 2) and first.stat().st_mtime_ns == before
    assert rows(stopped) == rows(straight)
    stopped.go(lambda: pytest.fail("a teacher that is done is not loaded"), lambda *_: None)


@pytest.mark.parametrize(
    ("more", "said"), [({"nbest": 3}, "nbest was 1"), ({"noise": 1}, "noise"), ({"teachers": [STORED, STORED]}, "teachers")]
)
def test_translations_that_were_asked_for_otherwise_are_refused(more: dict[str, Any], said: str, tmp_path: Path) -> None:
    asked(tmp_path).begin()
    asked(tmp_path).begin()
    with pytest.raises(ConfigError, match="give another folder with -o") as caught:
        asked(tmp_path, **more).begin()
    assert said in str(caught.value)
    (tmp_path / "text.en").write_bytes(b"one\n")
    with pytest.raises(ConfigError, match="text was"):
        asked(tmp_path).begin()


def test_an_empty_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text.en").write_bytes(b"")
    with pytest.raises(DataError, match="has no lines"):
        asked(tmp_path).begin()


def test_references_are_parallel_to_the_text(tmp_path: Path) -> None:
    (tmp_path / "r.de").write_bytes(b"eins\n")
    with pytest.raises(DataError, match=r"has 9 lines and .* has 1 lines"):
        asked(tmp_path, references=str(tmp_path / "r.de"), nbest=2).begin()


def test_the_nearest_to_the_reference_is_taken_and_of_equals_the_first() -> None:
    made: Any = SimpleNamespace(text="drei vier", alternatives=[SimpleNamespace(text="eins zwei"), SimpleNamespace(text="eins drei")])
    assert choose_nearest(made, "eins zwei") == "eins zwei"
    assert choose_nearest(made, "xyq") == choose_nearest(made, "") == "drei vier"


def test_with_references_the_teacher_is_asked_for_several(tmp_path: Path) -> None:
    """The second best of each, as the reference: it comes out."""
    lines = [line for line in LINES if line and len(line) < 1500]
    (tmp_path / "text.en").write_bytes("".join(f"{line}\n" for line in lines).encode())
    with load() as translator:
        search = translator.settings.search.changed(beam=4, nbest=4)
        second = [made.alternatives[0].text for made in translator.translate(lines, search)]
    (tmp_path / "r.de").write_bytes("".join(f"{line}\n" for line in second).encode())
    work = asked(tmp_path, references=str(tmp_path / "r.de"), nbest=4)
    work.go(load, lambda *_: None)
    assert [row["target"] for row in rows(work)] == second


def test_noise_depends_on_the_number_of_a_line_and_leaves_placeholders_alone() -> None:
    lines = ["Three yellow houses stand in the garden."] * 3_000
    noisy = add_noise(lines, 0, 5, "en")
    assert add_noise(lines[1000:], 1000, 5, "en") == noisy[1000:]
    assert 0.07 < sum(a != b for a, b in zip(lines, noisy, strict=True)) / 3_000 < 0.13
    assert {"THREE YELLOW HOUSES STAND IN THE GARDEN.", "Three yellow houses stand in the garden"} < {*noisy}
    assert add_noise(lines, 0, 6, "en") != noisy
    assert add_noise(["Open %s in {place} now."] * 500, 0, 5, "en") == ["Open %s in {place} now."] * 500


def test_the_teacher_translates_the_noisy_source(tmp_path: Path) -> None:
    (tmp_path / "text.en").write_bytes(b"one two three.\n" * 40)
    work = asked(tmp_path, noise=2)
    work.go(load, lambda *_: None)
    sources = [row["source"] for row in rows(work)]
    assert sources == add_noise(["one two three."] * 40, 0, 2, "en") and len({*sources}) > 1
    with load() as translator:
        assert [row["target"] for row in rows(work)] == [each.text for each in translator.translate(sources)]


def test_an_ensemble_of_one_teacher_is_this_teacher_and_other_pieces_are_refused(tmp_path: Path) -> None:
    texts = ["one two three", "nine ⟦0⟧ four"]
    with open_teachers([STORED, STORED], DIRECTION, threads=1) as two, load() as one:
        assert [each.text for each in two.translate(texts)] == [each.text for each in one.translate(texts)]
        assert two.engine.longest_source == one.engine.longest_source
    write(tmp_path / "old", tagged_bundle.settings_of(), tagged_bundle.model().state_dict(), (tagged_bundle.tokenizer().model,) * 2)
    with pytest.raises(ConfigError, match="other pieces"):
        open_teachers([STORED, tmp_path / "old"], DIRECTION, threads=1)


def test_a_teacher_is_called_by_its_run(tmp_path: Path) -> None:
    assert name_teachers([tmp_path / "big" / "bundle", tmp_path / "o`dd"]) == "big and o\ufffddd"


def test_a_student_of_32_000_pieces_is_small_in_int8() -> None:
    """A byte for each number of a matrix and four for each of its rows; four for all other numbers."""
    shapes = [weight.shape for weight in Transformer(ModelConfig.preset("student", 32_000)).parameters()]
    assert sum((len(shape) > 1 and shape.numel() + 4 * shape[0]) or 4 * shape.numel() for shape in shapes) < 17e6


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], ["--text is missing", "name a teacher", "-o is missing"]),
        ([STORED, "--text", "a", "--translations", "b", "-o", "c"], ["one of the two"]),
        (["--text", "a", "--translations", "b", "--references", "r", "-o", "c"], ["--references choose"]),
        ([STORED, "--text", "a", "-o", STORED], ["holds the teacher"]),
        ([STORED, "--text", "a", "-o", "c", "--nbest", "4"], ["--nbest are to choose from by --references"]),
    ],
)
def test_what_cannot_be_distilled_is_refused_with_every_reason(words: list[Any], said: list[str]) -> None:
    done = here("distill", *words)
    assert done.code == 2 and all(each in done.err for each in said), done.err


@pytest.mark.process
def test_a_student_is_trained_says_who_taught_it_and_goes_on(tmp_path: Path) -> None:
    lines = [f"{a} {b} {c}" for a in ("one", "two", "three") for b in ("four", "five", "six") for c in ("seven", "eight", "nine", "one")]
    (tmp_path / "t.en").write_bytes("".join(f"{line}\n" for line in lines).encode())
    words = [
        *("distill", STORED, "--text", tmp_path / "t.en", "-o", tmp_path / "s", "--preset", "toy", "--steps", "2", "--threads", "1"),
        *("--workers", "0", "--precision", "float32", "--no-export", "--anyway", "--plain", "data.filters.wrong_language=off"),
        *("data.held_out.valid_pairs=4", "data.held_out.test_pairs=0", "probes.sentences=0", "model.max_length=20", "batch.longest=19"),
    ]
    done = here(*words)
    assert done.code == 0, done.err
    told = "trained on translations made by format-1"
    assert told in (tmp_path / "s" / "bundle" / "README.md").read_text("utf-8")
    assert told in (tmp_path / "s" / "report.md").read_text("utf-8")
    recipe = (tmp_path / "s" / "recipe.toml").read_text("utf-8")
    assert 'teacher = "format-1"' in recipe and all(f"{kind} = 0.0" in recipe for kind in NOISE) and "protect = 0.9" in recipe
    assert read(tmp_path / "s").settings.learnt is not None
    kept = (tmp_path / "s" / TRANSLATIONS / "00000.jsonl").stat().st_mtime_ns
    again = here(*words)
    assert again.code == 0 and (tmp_path / "s" / TRANSLATIONS / "00000.jsonl").stat().st_mtime_ns == kept
    assert "step=1/2" not in again.err
