"""`limelight evaluate` as a person and a script meet it: scores on stdout, progress on stderr, errors that name the fix."""

import contextlib
import gzip
import io
import json
import os
import pty
import re
import shlex
import shutil
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

import warm_process
from limelight.bundle.bundle import read, write
from limelight.cli.main import main
from limelight.corpus.config import PrepareSettings
from limelight.corpus.exchange.engine_local import LocalEngine
from limelight.corpus.feeding.shards import PreparedCorpus
from limelight.corpus.prepare import prepare

BUNDLE = Path(__file__).parents[1] / "bundles" / "format-1"
ENGLISH = "zero one two three four five six seven eight nine".split()  # noqa: SIM905
GERMAN = "null eins zwei drei vier fünf sechs sieben acht neun".split()  # noqa: SIM905


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str


def here(*arguments: object) -> Outcome:
    """The command in this process: the same function, its exit code and what it prints."""
    out, err = io.StringIO(), io.StringIO()
    argv = ["limelight", "evaluate", *map(str, arguments)]
    with mock.patch.object(sys, "argv", argv), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main()
            code: Any = 0
        except SystemExit as stopped:
            code = stopped.code
    return Outcome(int(code or 0), out.getvalue(), err.getvalue())


@dataclass(frozen=True)
class Files:
    source: Path
    reference: Path
    output: Path
    worse: Path


def said(number: int, words: list[str]) -> str:
    return " ".join(words[int(digit)] for digit in str(number))


@pytest.fixture
def files(tmp_path: Path) -> Files:
    numbers = [n * n + 1000 for n in range(1, 121)]
    made = Files(tmp_path / "test.en", tmp_path / "test.de", tmp_path / "good.de", tmp_path / "bad.de")
    reference = [said(n, GERMAN) for n in numbers]
    texts = {
        made.source: [said(n, ENGLISH) for n in numbers],
        made.reference: reference,
        made.output: ["" if n == 7 else text for n, text in enumerate(reference)],
        made.worse: [text.replace("ei", "ie") for text in reference],
    }
    for path, lines in texts.items():
        path.write_bytes("".join(f"{line}\n" for line in lines).encode())
    return made


def test_text_that_exists_is_scored(files: Files) -> None:
    outcome = here(files.output, files.reference, "--source", files.source)
    assert outcome.code == 0
    assert re.search(r"^good\.de: 120 sentences, 1 reference$", outcome.out, re.MULTILINE)
    for name in ("BLEU", "chrF2", "TER"):
        assert re.search(rf"^{name} +\d+\.\d ±\d+\.\d   \d+\.\d to \d+\.\d", outcome.out, re.MULTILINE)
    assert re.search(r"up to 10 words +120 ", outcome.out)
    assert "line 8, chrF 0.0: empty" in outcome.out and "translation  (empty)" in outcome.out
    assert "suspicious sentences: 1 empty" in outcome.out
    assert "nrefs:1|bs:1000|seed:12345|case:mixed|eff:no|tok:13a|smooth:exp" in outcome.out
    assert [line.split(":")[0] for line in outcome.err.split("\n") if line] == ["BLEU", "chrF2", "TER"]


def test_what_the_translations_are_good_for_is_said_first(files: Files, tmp_path: Path) -> None:
    """Also of a file that says one thing of everything, whose scores alone could be misread."""
    good = here(files.output, files.reference, "--source", files.source, "--metrics", "bleu,chrf")
    assert good.out.splitlines()[1].startswith("Good within its kind of text: ")
    same = tmp_path / "same.de"
    same.write_text("acht neun eins eins\n" * 120, encoding="utf-8")
    bad = here(same, files.reference, "--metrics", "bleu,chrf")
    assert bad.out.splitlines()[1].startswith("NOT USABLE: ") and "the same for several" in bad.out.splitlines()[2]
    found = json.loads(here(same, files.reference, "--metrics", "chrf", "--json").out)
    assert found["verdict"]["use"] == "not usable" and found["degenerate"] == 120


@pytest.mark.slow
def test_json_is_one_object_with_everything(files: Files) -> None:
    outcome = here(files.output, files.reference, "--source", files.source, "--compare", files.worse, "--json")
    assert outcome.code == 0 and outcome.err == "" and outcome.out.count("\n") == 1
    result = json.loads(outcome.out)
    assert [score["name"] for score in result["scores"]] == ["BLEU", "chrF2", "TER"]
    assert all(score["low"] <= score["value"] <= score["high"] and score["signature"] for score in result["scores"])
    assert result["buckets"][0]["sentences"] == 120 and result["buckets"][0]["by"] == "source"
    assert result["worst"][0]["line"] == 8 and result["worst"][0]["reasons"] == ["empty"]
    assert result["speed"] is None and result["sentences"] == 120
    assert result["compare"]["with"]["system"] == "bad"
    assert [each["better"] for each in result["compare"]["differences"]] == ["good"] * 3


@pytest.mark.slow
def test_two_systems_stand_side_by_side_with_a_verdict(files: Files) -> None:
    outcome = here(files.worse, files.reference, "--compare", files.output, "--metrics", "bleu,chrf", "-q")
    assert outcome.code == 0 and outcome.err == ""
    assert re.search(r"^compared +bad +good +difference$", outcome.out, re.MULTILINE)
    assert re.search(r"good is better by \d+\.\d BLEU \(p < 0\.001\): unlikely to be chance", outcome.out)


def test_a_translator_is_run_scored_and_its_speed_told(files: Files) -> None:
    outcome = here(BUNDLE, files.source, files.reference, "--metrics", "chrf,bleu")
    assert outcome.code == 0, outcome.err
    assert re.search(r"^translate: 100 % .*sentences/s, .* source \+ target pieces/s$", outcome.err, re.MULTILINE)
    assert re.search(r"format-1 translated 120 sentences in .*\(beam \d+, torch\): .* sentences/s", outcome.out)
    assert re.search(r"^chrF2 +(100|9\d)\.\d ", outcome.out, re.MULTILINE), "the stored translator knows these words"


@pytest.mark.slow
def test_what_is_saved_is_what_was_scored(files: Files, tmp_path: Path) -> None:
    saved = tmp_path / "saved.de"
    first = json.loads(here(BUNDLE, files.source, files.worse, "--json", "--save", saved).out)
    again = json.loads(here(saved, files.worse, "--json").out)
    assert first["scores"] == again["scores"] and 5 < first["scores"][0]["value"] < 95
    assert first["saved"] == str(saved) and saved.read_bytes().count(b"\n") == 120


@pytest.mark.slow
def test_speed_in_json_is_labelled_and_options_reach_the_search(files: Files) -> None:
    outcome = here(BUNDLE, files.source, files.reference, "--json", "--beam", "1", "--batch-pieces", "64")
    speed = json.loads(outcome.out)["speed"]
    assert speed["sentences"] == 120 and speed["search"]["beam"] == 1 and speed["runs_on"][0] == "torch"
    assert speed["source_pieces"] >= 4 * 120 and speed["target_pieces"] >= 4 * 120
    rate = (speed["source_pieces"] + speed["target_pieces"]) / speed["seconds"]
    assert speed["source_and_target_pieces_per_second"] == pytest.approx(rate)
    assert speed["sentences_per_second"] == pytest.approx(120 / speed["seconds"])


@pytest.mark.slow
def test_a_translator_is_compared_with_an_output(files: Files) -> None:
    outcome = here(files.worse, files.reference, "--source", files.source, "--compare", BUNDLE, "-q", "--metrics", "chrf")
    assert outcome.code == 0, outcome.err
    assert re.search(r"format-1 is better by \d+\.\d chrF2", outcome.out) and "format-1 translated" in outcome.out


@pytest.mark.slow
def test_both_systems_are_scored_alike_where_only_the_second_knows_the_language(files: Files, tmp_path: Path) -> None:
    bundle = read(BUNDLE)
    pieces = (BUNDLE / "pieces.model").read_bytes()
    write(tmp_path / "chinese", bundle.settings.changed(languages=("en", "zh")), bundle.weights(), pieces)
    output, reference = files.worse.rename(tmp_path / "output"), files.reference.rename(tmp_path / "reference")
    arguments = (output, reference, "--source", files.source, "--compare", tmp_path / "chinese")
    outcome = here(*arguments, "--json", "--metrics", "bleu,ter")
    assert outcome.code == 0, outcome.err
    result = json.loads(outcome.out)
    first, second = ([score["signature"] for score in each["scores"]] for each in (result, result["compare"]["with"]))
    assert first == second and "tok:zh" in first[0] and "asian:yes" in first[1]


@pytest.mark.slow
def test_device_format_and_threads_reach_the_translator(files: Files) -> None:
    running = ("--device", "cpu", "--dtype", "bfloat16", "--threads", "1")
    outcome = here(BUNDLE, files.source, files.reference, "--metrics", "chrf", "--json", *running)
    assert outcome.code == 0, outcome.err
    _, device, dtype, threads = json.loads(outcome.out)["speed"]["runs_on"]
    assert "cpu" in device and "bfloat16" in dtype and threads.startswith("threads 1 ")
    assert all("asked" in choice for choice in (device, dtype, threads))
    assert here(BUNDLE, files.source, files.reference, "--device", "abacus").code == 69


def test_translations_that_cannot_be_saved_are_not_made(files: Files, tmp_path: Path) -> None:
    folder = tmp_path / "translations"
    folder.mkdir()
    outcome = here(BUNDLE, files.source, files.reference, "--save", folder)
    assert outcome.code == 2 and outcome.out == ""
    assert f"--save {folder} is a folder; name a file" in outcome.err
    other = tmp_path / "other.de"
    other.write_bytes(Path(files.reference).read_bytes())
    outcome = here(BUNDLE, files.source, files.reference, "--compare", other, "--save", other, "--split", "valid")
    assert outcome.code == 2 and "--split is for a prepared corpus" in outcome.err
    outcome = here(BUNDLE, files.source, files.reference, "--compare", other, "--save", other)
    assert outcome.code == 2 and f"--save {other} is one of the files that are read" in outcome.err
    assert "%" not in outcome.err and list(folder.iterdir()) == []


@pytest.mark.parametrize(
    ("option", "value"),
    [("--beam", 0), ("--batch-pieces", 0), ("--threads", 0), ("--worst", -1), ("--resamples", -1), ("--seed", -1)],
)
def test_a_number_below_the_least_is_refused_with_the_name_of_its_option(option: str, value: int, files: Files) -> None:
    outcome = here(BUNDLE, files.source, files.reference, option, value)
    said = re.sub(r"\x1b\[[\d;]*m", "", outcome.err)  # in CI, Typer colours what it says
    assert outcome.code == 2 and outcome.out == "" and "Usage: " in said and f"'{option}'" in said


def test_of_short_sentences_the_screen_says_that_bleu_means_nothing(files: Files) -> None:
    files.output.write_bytes(b"eins zwei drei\n" * 120)
    outcome = here(files.output, files.output)
    assert re.search(r"^BLEU +0\.0 ", outcome.out, re.MULTILINE)
    assert re.search(r"^note: hardly any reference has four words, .*: look at chrF", outcome.out, re.MULTILINE)
    assert "look at chrF" not in here(files.worse, files.reference).out


@pytest.mark.slow
def test_the_test_split_of_a_prepared_corpus_is_translated(files: Files, tmp_path: Path) -> None:
    settings = PrepareSettings(
        languages=("en", "de"),
        corpora=[{"name": "numbers", "paths": [str(files.source), str(files.reference)]}],
        filters={"wrong_language": "off"},
        given_pieces=[str(BUNDLE / "pieces.model")],
    )
    with contextlib.closing(LocalEngine(0)) as engine:
        prepare(settings, tmp_path / "prepared", engine, lambda _: None, False)
    outcome = here(BUNDLE, tmp_path / "prepared", "--json", "--metrics", "chrf")
    assert outcome.code == 0, outcome.err
    result = json.loads(outcome.out)
    assert result["scores"][0]["value"] > 80
    assert result["sentences"] == PreparedCorpus.open(tmp_path / "prepared").split("test").rows > 0
    other = here(BUNDLE, tmp_path / "prepared", "--to", "fr")
    assert other.code == 2 and "has en to de, and nothing from any language to fr" in other.err
    swapped = here(tmp_path / "prepared", BUNDLE)
    assert swapped.code == 65 and "the translator comes first" in swapped.err


def test_further_references_and_packed_files_are_read(files: Files, tmp_path: Path) -> None:
    packed = tmp_path / "second.de.gz"
    packed.write_bytes(gzip.compress(files.worse.read_bytes()))
    outcome = here(files.worse, files.reference, "--reference", packed, "--json", "--metrics", "bleu", "--resamples", "0")
    score = json.loads(outcome.out)["scores"][0]
    assert score["value"] == pytest.approx(100) and "nrefs:2" in score["signature"] and score["low"] is None


def test_files_of_different_length_are_refused_by_name_and_count(files: Files) -> None:
    files.output.write_bytes(files.output.read_bytes() + b"noch eine\n")
    outcome = here(files.output, files.reference)
    assert outcome.code == 65 and outcome.out == ""
    assert f"{files.output} has 121" in outcome.err and f"{files.reference} has 120" in outcome.err


def test_catalogues_and_memories_are_no_lines(files: Files, tmp_path: Path) -> None:
    """Else the lines of their syntax would be scored."""
    for name in ("thunar.po", "memory.tmx", "pairs.tsv.gz", "out.jsonl", "text.xlf", "thunar.pot"):
        (tmp_path / name).write_bytes(b'msgid "one"\nmsgstr "eins"\n')
        done = here(tmp_path / name, files.reference)
        assert done.code == 65 and f"{name} is no file with a sentence in each line" in done.err.replace("\n", ""), done.err
        assert f"--test {tmp_path / name}" in done.err.replace("\n", "")


@pytest.mark.process
@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ((), 2, "0 names are not understood"),
        (("{output}",), 2, "is all that was named"),
        (("{output}", "{reference}", "{source}"), 2, "a folder with a translator is needed"),
        (("nothing", "{source}", "{reference}"), 2, "nothing does not exist"),
        (("{bundle}", "{source}"), 2, "name source and reference"),
        (("{bundle}", "{reference}", "{source}"), 65, "give the files in the other order"),
        (("{output}", "nothing.de"), 65, "nothing.de does not exist"),
        (
            ("{output}", "{reference}", "--metrics", "chrf,blue"),
            2,
            "--metrics: input should be 'bleu', 'chrf', 'chrf++' or 'ter', not 'blue'",
        ),
        (("{output}", "{reference}", "--tokenize", "words"), 2, "--tokenize: input should be '13a', "),
        (("{output}", "{reference}", "--threads", "1"), 2, "--threads is for translating, and nothing is translated"),
        (("{output}", "{reference}", "--metrics", ""), 2, "--metrics: name at least one"),
        (("{output}", "{reference}", "--beam", "4", "--save", "x"), 2, "nothing is translated here"),
        (("{output}", "{reference}", "--compare", "{bundle}"), 2, "--source"),
        (("{output}", "{reference}", "--comet-model", "x"), 2, "--comet is missing"),
        (("{output}", "{reference}", "--comet", "no/such/python", "--source", "{source}"), 2, "No such file"),
        (("{bundle}", "{source}", "{reference}", "--save", "no/folder/x"), 2, "there is no folder"),
        (("{bundle}", "{source}", "{reference}", "--save", "{reference}"), 2, "one of the files that are read, which would be gone"),
        (("{bundle}", "{source}", "{reference}", "--source", "{source}"), 2, "the source is the second name"),
    ],
)
def test_a_mistake_is_explained(arguments: tuple[str, ...], code: int, said: str, files: Files) -> None:
    values = {**{name: str(path) for name, path in vars(files).items()}, "bundle": str(BUNDLE)}
    outcome = here(*(argument.format(**values) for argument in arguments))
    assert (outcome.code, outcome.out) == (code, "")
    assert said in outcome.err and outcome.err.startswith("error: ")


def test_every_wrong_option_is_named_at_once(files: Files) -> None:
    outcome = here(files.output, files.reference, "--metrics", "blue", "--resamples", "7", "--worst", "9999")
    assert outcome.code == 2 and all(f"  - --{name}: " in outcome.err for name in ("metrics", "resamples", "worst"))
    assert "Settings" not in outcome.err


def test_text_of_others_cannot_steer_a_terminal(files: Files) -> None:
    lines = files.output.read_bytes().split(b"\n")
    lines[3] = "\x1b[2J\x1b]0;owned\x07 \u202egnihton\u202c \x9b31m".encode()
    files.output.write_bytes(b"\n".join(lines))
    outcome = here(files.output, files.reference)
    assert "gnihton" in outcome.out and not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]", outcome.out)
    assert json.loads(here(files.output, files.reference, "--json").out)["worst"][1]["translation"].startswith("\x1b[2J")


def test_a_long_sentence_is_cut_on_the_screen_and_whole_in_json(files: Files) -> None:
    lines = files.output.read_bytes().split(b"\n")
    lines[3] = b"xy z" * 300
    files.output.write_bytes(b"\n".join(lines))
    assert max(map(len, here(files.output, files.reference).out.split("\n"))) < 340
    worst = json.loads(here(files.output, files.reference, "--json").out)["worst"]
    assert lines[3].decode() in [each["translation"] for each in worst]


@pytest.mark.process
def test_a_terminal_shows_bars_and_a_clean_result(files: Files) -> None:
    ours, theirs = pty.openpty()
    settings = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100", "OMP_NUM_THREADS": "1"}
    for name in ("NO_COLOR", "FORCE_COLOR", "CI"):
        settings.pop(name, None)
    command = [sys.executable, "-m", "limelight", "evaluate", str(files.output), str(files.reference)]
    blocks: list[bytes] = []

    def read() -> None:
        with contextlib.suppress(OSError):  # how Linux says that the other side is closed
            while block := os.read(ours, 65_536):
                blocks.append(block)

    reader = threading.Thread(target=read)
    reader.start()
    done = warm_process.run(command, stdout=subprocess.PIPE, stderr=theirs, env=settings, check=False)
    os.close(theirs)
    reader.join(30)
    os.close(ours)
    sent = b"".join(blocks).decode()
    assert done.returncode == 0 and "\x1b[" in sent and "━" in sent and "TER" in sent
    assert b"\x1b" not in done.stdout and b"BLEU" in done.stdout


@pytest.mark.process
def test_scoring_text_loads_no_torch(files: Files) -> None:
    code = "import sys\nfrom limelight.cli.main import main\nmain()\nassert 'torch' not in sys.modules"
    command = [sys.executable, "-c", code, "evaluate", str(files.output), str(files.reference), "-q"]
    done = subprocess.run(command, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()


def test_help_gives_examples_that_parse() -> None:
    outcome = here("--help")
    assert outcome.code == 0 and outcome.out.count("limelight evaluate ") >= 3


@pytest.mark.slow
def test_a_translator_is_calibrated_on_a_set_and_judged_by_it_afterwards(tmp_path: Path, files: Files) -> None:
    for path in (files.source, files.reference):  # the same twice: 240 sentences of four words and more
        path.write_bytes(path.read_bytes() * 2)
    bundle = Path(shutil.copytree(BUNDLE, tmp_path / "numbers"))
    assert json.loads(here(bundle, files.source, files.reference, "--json").out)["confidence"] is None
    first = here(bundle, files.source, files.reference, "--calibrate")
    assert first.code == 0 and "kept in the bundle" in first.out
    calibration = read(bundle).settings.confidence
    assert calibration is not None and calibration.lines == 240
    again = json.loads(here(bundle, files.source, files.reference, "--json").out)
    assert again["confidence"]["words"]["error"] < 0.05 and not again["calibrated"]
    assert read(bundle).settings.confidence == calibration


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["good.de", "test.de", "--calibrate"], "these translations exist"),
        (["numbers", "test.en", "test.de", "--calibrate", "--beam", "2"], "leave out --beam"),
        (["numbers", "few.en", "few.de", "--calibrate"], "500 words in 125 sentences"),
    ],
)
def test_a_calibration_that_could_not_be_used_is_refused(
    tmp_path: Path, files: Files, monkeypatch: pytest.MonkeyPatch, options: list[str], why: str
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(BUNDLE, tmp_path / "numbers")
    (tmp_path / "few.en").write_bytes(b"one two\n")
    (tmp_path / "few.de").write_bytes(b"eins zwei\n")
    found = here(*options)
    assert found.code != 0 and why in found.err
    assert read(tmp_path / "numbers").settings.confidence is None


@pytest.mark.process
@pytest.mark.parametrize(("closed", "lines"), [(">&-", 0), ("2>&-", 1)])
def test_whoever_closes_a_stream_gets_nothing_of_it_and_no_traceback(closed: str, lines: int, tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(b"ein Hund\nzwei Katzen\n")
    command = [sys.executable, "-m", "limelight", "evaluate", tmp_path / "text", tmp_path / "text", "--json", "--worst", "0"]
    done = subprocess.run(["sh", "-c", f"{shlex.join(map(str, command))} {closed}"], capture_output=True, check=False)
    assert done.returncode == 0 and b"Traceback" not in done.stderr
    assert done.stdout.count(b"\n") == lines
