"""Languages and tags on the command line: translate, documents, evaluate and inspect take the direction that they are asked for."""

import contextlib
import io
import json
import sys
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import pytest

from limelight.cli.main import main
from limelight.text.pieces.tags import language_piece
from tagged_bundle import TEXTS, tags_of, translator, write_tagged

TEXT = TEXTS[0]


class Done(NamedTuple):
    code: int
    out: str
    err: str


def run(*arguments: object) -> Done:
    """The command in this process: the same function, its exit code and what it prints."""
    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.StringIO()
    argv = ["limelight", *map(str, arguments), *(["--threads", "1"] if arguments[0] != "evaluate" else [])]
    with mock.patch.object(sys, "argv", argv), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main()
            code: Any = 0
        except SystemExit as stopped:
            code = stopped.code
    out.flush()
    return Done(int(code or 0), out.buffer.getvalue().decode(), err.getvalue())  # type: ignore[attr-defined]


@pytest.fixture(scope="module")
def multi(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tagged(tmp_path_factory.mktemp("directions") / "multi")


def test_a_text_goes_to_the_language_that_was_asked_for(multi: Path) -> None:
    known = translator()
    for options, view in (
        (["--to", "fr"], {"target": "fr"}),
        (["--to", "fra_Latn", "--tag", "ui", "--tag", "formal"], {"target": "fr", "tags": ["formal", "ui"]}),
        ([], {}),
    ):
        done = run("translate", multi, TEXT, "--no-guards", *options)
        assert (done.code, done.out) == (0, known.translate([TEXT], guards=False, **view)[0].text + "\n"), done.err  # type: ignore[arg-type]
        assert "warning: the model was taught" not in done.err


def test_what_was_never_trained_is_translated_and_said(multi: Path) -> None:
    done = run("translate", multi, TEXT, "--to", "fr", "--from", "de")
    assert done.code == 0 and "taught de and fr, but not from de to fr" in done.err


def test_a_direction_that_only_the_translator_before_was_taught_is_told(tmp_path: Path) -> None:
    """Its card says it, a translation into it is warned of, and what asks for less than a direction does not get it."""
    tags = tags_of(inherited=(("en", "fr"), ("de", "en")))
    folder = write_tagged(tmp_path / "child", tags=tags)
    assert "warning: en to fr was taught to the translator before" in run("translate", folder, TEXT, "--to", "fr").err
    assert "was taught" not in run("translate", folder, TEXT, "--no-guards").err
    assert "neither taught nor scored since: `en` to `fr`, `de` to `en`" in (folder / "README.md").read_text()
    assert tags.choose(("en", "de"), "en", None) == ("fr", "en") and tags_of().choose(("en", "de"), "en", None) == ("de", "en")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--to", "frr"], ["target: there is no 'frr', but de, en, fr", "did you mean fr?"]),
        (["--tag", "formel"], ["it has formal, ui", "did you mean formal?"]),
    ],
)
def test_what_there_is_not_is_refused_with_what_there_is(multi: Path, options: list[str], said: list[str]) -> None:
    done = run("translate", multi, TEXT, *options)
    assert (done.code, done.out) == (2, "")
    assert [words for words in said if words not in done.err] == []


def test_a_document_goes_to_the_language_that_was_asked_for(multi: Path, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text(TEXT)
    done = run("translate", multi, "--document", tmp_path / "in.txt", tmp_path / "out.txt", "--to", "fr", "--tag", "ui", "--no-guards")
    assert done.code == 0, done.err
    assert (tmp_path / "out.txt").read_text() == translator().translate([TEXT], guards=False, target="fr", tags=["ui"])[0].text


@pytest.mark.slow
def test_a_set_is_scored_in_the_direction_of_its_files_or_the_one_that_was_asked_for(multi: Path, tmp_path: Path) -> None:
    known, sources = translator(), [text for text in TEXTS if "\n" not in text]
    for name, lines in (("test.en", sources), ("test.fr", [one.text for one in known.translate(sources, target="fr")])):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
    files = (tmp_path / "test.en", tmp_path / "test.fr")
    usual = ("--metrics", "chrf", "--resamples", "0", "--json")
    for options, perfect in (([], True), (["--to", "fre"], True), (["--to", "de"], False), (["--to", "fr", "--tag", "ui"], False)):
        done = run("evaluate", multi, *files, *usual, *options)
        assert done.code == 0, done.err
        assert (json.loads(done.out)["scores"][0]["value"] == 100) is perfect
    for source, target in (("eng", "fra"), ("eng_Latn", "fr_CA")):
        others = [(tmp_path / f"set.{code}", path) for code, path in zip((source, target), files, strict=True)]
        for other, path in others:
            other.write_bytes(path.read_bytes())
        done = run("evaluate", multi, *(other for other, _ in others), *usual)
        assert done.code == 0 and json.loads(done.out)["languages"] == ["en", "fr"], done.err
        assert json.loads(done.out)["scores"][0]["value"] == 100
    (tmp_path / "set.it").write_bytes(files[1].read_bytes())
    untaught = run("evaluate", multi, tmp_path / "set.eng", tmp_path / "set.it", *usual)
    assert untaught.code == 65 and "from eng to it by its names, and the translator was taught" in untaught.err
    refused = run("evaluate", *files, "--tag", "ui", "--from", "en")
    assert refused.code == 2 and "--tag is for translating" in refused.err and "--from is for translating" in refused.err


def test_a_trace_shows_the_tags_that_were_asked_for(multi: Path) -> None:
    done = run("inspect", multi, TEXT, "--to", "fr", "--tag", "formal", "--hide", "1", "--json")
    assert done.code == 0, done.err
    trace = json.loads(done.out)
    shown = json.dumps(trace["source"], ensure_ascii=False)
    assert language_piece("fr") in shown and "<formal>" in shown
    assert (trace["model"]["src_lang"], trace["model"]["tgt_lang"]) == ("en", "fr")
    assert run("inspect", multi, TEXT, "--to", "fr", "--open").code == 2
