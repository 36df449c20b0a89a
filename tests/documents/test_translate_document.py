"""`limelight translate --document`: the file that is written, what is said, and what is never overwritten."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from stand_ins import Answer, each, upper

from limelight.cli.translate.document import check_paths, run_document, summary
from limelight.decoding.guards import Notice
from limelight.documents.translating import DocumentCounts
from limelight.errors import ConfigError, DataError

TRANSLATOR: Any = SimpleNamespace(settings=SimpleNamespace(languages=("en", "de")), translate=each(upper))


def test_a_document_is_translated_into_another_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, target = tmp_path / "in.txt", tmp_path / "out.txt"
    source.write_bytes(b"one\n1\ntwo\n")
    run_document(TRANSLATOR, source, target)
    assert source.read_bytes() == b"one\n1\ntwo\n" and target.read_bytes() == b"ONE\n1\nTWO\n"
    said = capsys.readouterr()
    assert said.out == "" and f"{source} -> {target}: 2 of 2 texts translated ·" in said.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.txt", "out.txt"]


def test_warnings_are_said_with_their_lines_and_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "in.txt").write_bytes(b"\n".join(b"a%d" % number for number in range(25)))
    run_document(
        TRANSLATOR,
        tmp_path / "in.txt",
        tmp_path / "out.txt",
        translate=lambda texts: [Answer("x", [Notice("loop", "it loops")]) for _ in texts],
        quiet=True,
    )
    lines = capsys.readouterr().err.strip().split("\n")
    file = tmp_path / "in.txt"
    assert lines[0] == f"warning: {file}:1: loop: it loops" and lines[-1] == f"warnings: {file}: 25 loop" and len(lines) == 21


def test_what_has_no_translation_is_said_first_and_how_one_was_made_is_not(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "in.txt").write_bytes(b"\n".join(b"a%d" % number for number in range(25)))
    said = [Notice("engine", "by torch"), Notice("numbers", "others")]
    run_document(
        TRANSLATOR,
        tmp_path / "in.txt",
        tmp_path / "out.txt",
        translate=lambda texts: [Answer("" if text == "a24" else "x", said) for text in texts],
        quiet=True,
    )
    lines = capsys.readouterr().err.strip().split("\n")
    assert "in.txt:25: empty:" in lines[0] and "in.txt:1: numbers:" in lines[1] and lines[-1].endswith(": 24 numbers, 1 empty")
    assert not any("engine" in line for line in lines)


def test_nothing_is_written_when_it_fails(tmp_path: Path) -> None:
    (tmp_path / "in.xlf").write_bytes(b"<xliff>")
    with pytest.raises(DataError, match=r"in\.xlf: not well-formed"):
        run_document(TRANSLATOR, tmp_path / "in.xlf", tmp_path / "out.xlf", quiet=True)
    assert [path.name for path in tmp_path.iterdir()] == ["in.xlf"]


def test_the_document_itself_is_never_overwritten(tmp_path: Path) -> None:
    source, link, same = tmp_path / "in.txt", tmp_path / "link.txt", tmp_path / "hard.txt"
    source.write_bytes(b"one")
    link.symlink_to(source)
    same.hardlink_to(source)
    for target in (source, link, same, tmp_path / "." / "in.txt"):
        with pytest.raises(ConfigError, match="never overwritten"):
            check_paths(source, target)


def test_paths_that_cannot_be_used_are_named(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_bytes(b"one")
    (tmp_path / "folder.txt").mkdir()
    wrong = [
        ("in.txt", "out.po", ConfigError, "both must be the same"),
        ("none.txt", "out.txt", DataError, "not there"),
        ("folder.txt", "out.txt", DataError, "a folder"),
        ("in.txt", "folder.txt", ConfigError, "is a folder"),
        ("in.txt", "no/out.txt", ConfigError, "make it first"),
        ("in.doc", "out.doc", ConfigError, "ends with one of"),
    ]
    for source, target, error, said in wrong:
        with pytest.raises(error, match=said):
            check_paths(tmp_path / source, tmp_path / target)


def test_the_summary_tells_what_became_of_every_text() -> None:
    assert summary(DocumentCounts(texts=1200, translated=1190, unchanged=9, failed=1, apart=3, left=4)) == (
        "1 190 of 1 200 texts translated (3 of them between their tags, one by one), 9 unchanged, 1 failed; 4 left alone"
    )
    assert summary(DocumentCounts(texts=2, translated=2, unchanged=0, failed=0, apart=0, left=0)) == "2 of 2 texts translated"
