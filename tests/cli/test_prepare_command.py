"""`limelight prepare` as a person and a script meet it: progress, JSON, messages that name the fix, exit codes, and no text of theirs."""

import gzip
import json
import os
import pty
import re
import select
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import warm_process

sys.path.insert(0, str(Path(__file__).parents[1] / "corpus"))
from made_sentences import sentences
from prepare_command import FAST, command, environment, given_pieces, here, outside, write_lines, write_pairs

import limelight


@pytest.fixture
def paths(tmp_path: Path) -> tuple[Path, Path]:
    return write_pairs(sentences(60), tmp_path)


@pytest.fixture
def run(paths: tuple[Path, Path], tmp_path: Path) -> list[Any]:
    return ["prepare", *paths, *FAST, given_pieces(), "-o", tmp_path / "out"]


def on_a_terminal(*arguments: object) -> tuple[int, str]:
    """Exit code and all that a terminal of 100 columns was sent."""
    ours, theirs = pty.openpty()
    settings = environment(TERM="xterm-256color", COLUMNS="100", LINES="30")
    for name in ("NO_COLOR", "FORCE_COLOR", "CI"):
        settings.pop(name, None)
    process = warm_process.Popen(command(*arguments), stdin=theirs, stdout=theirs, stderr=theirs, env=settings)
    os.close(theirs)
    sent, until = b"", time.monotonic() + 120
    while time.monotonic() < until:
        if select.select([ours], [], [], 0.5)[0]:
            try:
                block = os.read(ours, 65_536)
            except OSError:  # how Linux says that the other side is closed
                break
            if not block:
                break
            sent += block
        elif process.poll() is not None:
            break
    os.close(ours)
    return process.wait(), sent.decode()


@pytest.mark.process
def test_a_terminal_shows_bars_and_the_time_left(run: list[Any]) -> None:
    code, sent = on_a_terminal(*run)
    assert code == 0, sent
    assert "\x1b[" in sent and "━" in sent, "no bar"
    assert re.search(r"left.*\d+:\d\d", re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", sent))
    for step in ("read", "settle", "pieces", "encode"):
        assert step in sent
    assert "100 %" in sent and "wrote" in sent


@pytest.mark.process
@pytest.mark.slow
def test_plain_on_a_terminal_has_no_bars(run: list[Any]) -> None:
    code, sent = on_a_terminal(*run, "--plain")
    assert code == 0 and "\x1b" not in sent and "━" not in sent
    assert "read: 100 %" in sent


@pytest.mark.process
def test_a_pipe_gets_progress_line_by_line_and_no_control_characters(run: list[Any]) -> None:
    outcome = outside(*run)
    assert outcome.code == 0
    for text in (outcome.out, outcome.err):
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", text)
    assert [line.split(":")[0] for line in outcome.err.split("\n") if line] == ["read", "settle", "pieces", "encode"]
    assert "60 pairs" in outcome.err
    assert re.search(r"^read +60 pairs", outcome.out, re.MULTILINE) and "wrote" in outcome.out


def test_a_long_step_in_a_pipe_says_how_long_it_still_takes(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from limelight.cli import screen

    monkeypatch.setattr(screen, "PLAIN_EVERY", 0.0)
    shown = screen.Screen(plain=True)
    for done in (0, 25, 50, 100):
        shown.step("read", done, 100, "7 pairs")
    lines = capsys.readouterr().err.split("\n")
    assert "about" in lines[1] and "left" in lines[1] and "7 pairs" in lines[1]
    assert lines[-2].startswith("read: 100 %") and "left" not in lines[-2]


@pytest.mark.process
def test_json_is_one_object_and_nothing_else(run: list[Any], tmp_path: Path) -> None:
    outcome = outside(*run, "--json")
    assert outcome.code == 0 and outcome.err == ""
    assert outcome.out.count("\n") == 1 and outcome.out.endswith("\n")
    assert json.loads(outcome.out) == json.loads((tmp_path / "out" / "manifest.json").read_bytes())
    again = here(*run, "--json")
    assert again.out == outcome.out


def test_quiet_says_nothing_but_the_result(run: list[Any]) -> None:
    outcome = here(*run, "--quiet")
    assert outcome.code == 0 and outcome.err == "" and "wrote" in outcome.out


def test_what_the_ending_names_is_there(run: list[Any], tmp_path: Path) -> None:
    named = re.findall(r"[a-z]+\.(?:html|json|model)", here(*run).out)
    assert all((tmp_path / "out" / name).is_file() for name in named), named
    assert "nothing to do" in here(*run).out


def test_a_check_shows_where_the_first_offending_lines_stand(tmp_path: Path) -> None:
    paths = write_lines([b"", b"one two three four"], [b"x", b"one two three four"], tmp_path)
    outcome = here("prepare", *paths, *FAST, "--check-only")
    assert outcome.code == 0
    assert f"empty: {paths[0]}:1\n" in outcome.out and f"copied: {paths[0]}:2\n" in outcome.out
    assert outcome.out.endswith("nothing was written\n")


ALONE = ("--workers", "0")  # no process is started to say what is wrong
# Every message names the fix; the exit code says whose turn it is.


def says(outcome: Any, code: int, *words: str) -> None:
    assert outcome.code == code, outcome.err
    assert outcome.out == "" and "Traceback" not in outcome.err
    for word in words:
        assert word in outcome.err, outcome.err


@pytest.mark.process
def test_a_missing_file_is_65_with_the_name_that_was_meant(paths: tuple[Path, Path], tmp_path: Path) -> None:
    outcome = outside("prepare", tmp_path / "trian.en", paths[1], "--source", "en", "--target", "de", "-o", tmp_path / "out")
    says(outcome, 65, f"{tmp_path / 'trian.en'} does not exist; did you mean {paths[0]}")
    held_out = here("prepare", *paths, "--valid", "dev.en", "--valid", "dev.de", *ALONE, "-o", tmp_path / "out")
    says(held_out, 65, "dev.en does not exist", "dev.de does not exist", "check the name")
    assert not (tmp_path / "out").exists()


@pytest.mark.process
def test_a_missing_file_is_said_to_be_missing_when_languages_are_guessed(paths: tuple[Path, Path], tmp_path: Path) -> None:
    says(
        here("prepare", tmp_path / "trian.en", paths[1], *ALONE, "-o", tmp_path / "out"),
        65,
        "does not exist",
        str(paths[0]),
    )


@pytest.mark.process
def test_a_line_file_without_partner_is_2(paths: tuple[Path, Path], tmp_path: Path) -> None:
    for arguments in ((paths[0],), (*paths, paths[0])):
        says(
            here("prepare", *arguments, *ALONE, "-o", tmp_path / "out"),
            2,
            str(paths[0]),
            "no partner",
            "give source and target",
        )


def test_an_unknown_key_is_2_with_a_near_one(run: list[Any]) -> None:
    says(here(*run, "filters.copid=off"), 2, "filters.copid: there is no such key", "did you mean `copied`?")
    says(here(*run, "filter.copied=off"), 2, "filter", "did you mean `filters`?")


def test_every_wrong_value_is_named_at_once(run: list[Any]) -> None:
    outcome = here(*run, "filters.copied=maybe", "shard_megabytes=0", "held_out.near=2")
    says(outcome, 2, "filters.copied", "'off', 'warn' or 'drop'", "shard_megabytes", "held_out.near")


def test_a_value_in_the_place_of_a_section_is_2_and_says_so(run: list[Any]) -> None:
    says(here(*run, "filters=off"), 2, "filters", "filters.")


@pytest.mark.process
def test_languages_that_cannot_be_told_are_2(tmp_path: Path) -> None:
    one, two = tmp_path / "left", tmp_path / "right"
    one.write_bytes(b"a\n")
    two.write_bytes(b"b\n")
    says(
        here("prepare", one, two, *ALONE, "-o", tmp_path / "out"),
        2,
        "languages cannot be told",
        "--source en --target de",
    )
    says(here("prepare", one, two, "--source", "en", *ALONE, "-o", tmp_path / "out"), 2, "--source en --target de")


@pytest.mark.process
def test_files_in_the_other_order_are_65(paths: tuple[Path, Path], tmp_path: Path) -> None:
    says(
        here("prepare", paths[1], paths[0], "--source", "en", "--target", "de", "-o", tmp_path / "out"),
        65,
        "in the other order",
    )


def test_a_weight_for_no_corpus_is_2_with_those_there_are(run: list[Any]) -> None:
    says(here(*run, "--weight", "trian=2"), 2, "--weight trian=2", "there is no corpus 'trian'", "there are: train")
    says(here(*run, "--weight", "train=often"), 2, "write NAME=NUMBER, such as train=2")


def test_a_cut_file_is_65_and_is_named(paths: tuple[Path, Path], tmp_path: Path) -> None:
    cut = tmp_path / "train.en.gz"
    cut.write_bytes(gzip.compress(paths[0].read_bytes())[:-20])
    says(
        here("prepare", cut, paths[1], *FAST, "-o", tmp_path / "out"),
        65,
        str(cut),
        "cut short",
        "fetch or pack it again",
    )


def test_another_corpus_in_the_folder_is_65_and_force_replaces_it(run: list[Any]) -> None:
    assert here(*run).code == 0
    says(here(*run, "seed=18", "--json"), 65, "other inputs or with other settings", "-o", "--force")
    assert here(*run, "seed=18", "--force").code == 0


@pytest.mark.parametrize("content", [b"[filters\n", b"\xff"])
def test_a_config_that_cannot_be_read_is_2(content: bytes, run: list[Any], tmp_path: Path) -> None:
    config = tmp_path / "prepare.toml"
    says(here(*run, "--config", config), 2, str(config), "does not exist")
    config.write_bytes(content)
    says(here(*run, "--config", config), 2, str(config), "not valid TOML")


def test_the_command_line_wins_over_the_file(run: list[Any], tmp_path: Path) -> None:
    config = tmp_path / "prepare.toml"
    config.write_bytes(b'seed = 5\n[filters]\ncopied = "off"\nmarkup = "off"\n')
    report = here(*run, "--config", config, "filters.copied=warn", "--json").report
    chosen = report["settings"]
    assert (chosen["seed"], chosen["filters"]["copied"], chosen["filters"]["markup"]) == (5, "warn", "off")


def test_a_model_that_is_none_is_65(run: list[Any], tmp_path: Path) -> None:
    model = tmp_path / "wrong.model"
    model.write_bytes(b"no model")
    says(here(*run, f'given_pieces=["{model}"]'), 65, str(model), "SentencePiece")


def test_a_model_that_is_missing_is_65(run: list[Any], tmp_path: Path) -> None:
    says(here(*run, f'given_pieces=["{tmp_path / "missing.model"}"]'), 65, "missing.model", "does not exist")


def test_a_file_in_the_place_of_the_output_is_an_error_of_ours(paths: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / "out").write_bytes(b"")
    outcome = here("prepare", *paths, *FAST, given_pieces(), "-o", tmp_path / "out")
    assert outcome.code in (2, 65, 73, 74) and str(tmp_path / "out") in outcome.err


@pytest.mark.process
def test_nothing_of_the_text_reaches_standard_error(tmp_path: Path) -> None:
    """Faults of every kind, each with a word that occurs nowhere else; in runs that end well and in runs that do not."""
    canaries = [f"canary{i:03d}zq" for i in range(12)]
    good = [(s.encode(), t.encode()) for s, t in sentences(40)]
    rows = [(f"{word} a b c d".encode(), f"{word} a b c d".encode()) for word in canaries[:6]]
    rows += [(word.encode() + b"\xff", b"x") for word in canaries[6:9]] + [(b"", word.encode()) for word in canaries[9:]]
    lines = [*good, *rows]
    paths = write_lines([s for s, _ in lines], [t for _, t in lines], tmp_path)
    outcomes = [
        outside("prepare", *paths, *FAST, given_pieces(), "-o", tmp_path / "out"),
        here("prepare", *paths, *FAST, "-o", tmp_path / "checked", "--check-only"),
    ]
    uneven = write_lines([s for s, _ in rows], [t for _, t in rows[1:]], tmp_path, "uneven")
    nothing = write_lines([s for s, _ in rows], [t for _, t in rows], tmp_path, "nothing")
    (tmp_path / "bad.tmx").write_bytes(f"<tmx><body><tu><tuv xml:lang='en'><seg>{canaries[0]}</seg></tuv></body>".encode())
    outcomes += [
        here("prepare", *uneven, *FAST, "-o", tmp_path / "2"),
        here("prepare", *nothing, *FAST, "-o", tmp_path / "3"),
        here("prepare", tmp_path / "bad.tmx", "--source", "en", "--target", "de", *FAST, "-o", tmp_path / "4"),
    ]
    assert [outcome.code for outcome in outcomes] == [0, 0, 65, 65, 65]
    assert any(word in outcomes[1].out for word in canaries), "a check shows the lines, on standard output"
    assert not [word for word in canaries for outcome in outcomes if word in outcome.err]


# Help.


def test_help_has_three_examples_that_can_be_run() -> None:
    shown = here("prepare", "--help")
    assert shown.code == 0
    assert len(re.findall(r"^ *limelight prepare [^\s\[]+ ", shown.out.partition("Examples:")[2], re.MULTILINE)) >= 3


def test_help_explains_every_option() -> None:
    shown = here("prepare", "--help").out
    for option in (
        "--output",
        "--source",
        "--target",
        "--valid",
        "--test",
        "--vocab-size",
        "--weight",
        "--config",
        "--check-only",
    ):
        assert option in shown
    for option in ("--keep-dropped", "--engine", "--workers", "--force", "--json", "--plain", "--quiet"):
        assert option in shown


def test_alone_it_shows_its_verbs() -> None:
    shown = here()
    assert shown.code in (0, 2) and "prepare" in shown.out + shown.err
    assert "--help" in shown.out + shown.err


@pytest.mark.process
def test_the_version_is_that_of_the_package() -> None:
    outcome = outside("--version")
    assert (outcome.code, outcome.out, outcome.err) == (0, f"limelight {limelight.__version__}\n", "")


def test_an_unknown_verb_is_2() -> None:
    outcome = here("prepar")
    assert outcome.code == 2 and "prepar" in outcome.err


def test_the_old_names_of_the_languages_still_work_with_a_word_about_the_new(run: list[Any]) -> None:
    outcome = here(*run, "--from", "en", "--to", "de", "--quiet")
    assert outcome.code == 0, outcome.err
    assert "--from is now called --source" in outcome.err and "--to is now called --target" in outcome.err
    assert "--from" not in here("prepare", "--help").out


def test_codes_of_languages_are_written_as_usual_and_unknown_ones_are_2(run: list[Any]) -> None:
    made = here(*run, "--source", "eng", "--target", "ger", "--json")
    assert made.code == 0 and made.report["languages"] == ["en", "de"], made.err
    says(here(*run, "--target", "xx"), 2, "--target xx is not a language code", "did you mean")
