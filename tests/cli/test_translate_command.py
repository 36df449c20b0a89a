"""`limelight translate` in a pipe, as Unix users expect it: a line out for a line in, in order, at once when someone types, and no surprise
in exit codes. The translator is the stored one, of English number words to German ones."""

import contextlib
import io
import json
import os
import pty
import re
import select
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any, NamedTuple
from unittest import mock

import pytest
import torch

import warm_process

sys.path.insert(0, str(Path(__file__).parents[1] / "corpus"))
from prepare_command import MEASURED, environment

from limelight.bundle import read, write
from limelight.cli.main import main
from limelight.cli.translate import output, text_lines
from limelight.cli.translate.chunk_translator import _search
from limelight.cli.translate.output import TranslateProgress
from limelight.cli.translate.text_lines import LineReader
from limelight.decoding.config import Sampling, SearchSettings
from limelight.errors import DataError
from limelight.evaluation.verdict import QualityVerdict, Use
from limelight.translator.translate import Translator
from limelight.translator.translation import Translation, nothing

BUNDLE = Path(__file__).parents[1] / "bundles" / "format-1"
ENGLISH = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
GERMAN = ["null", "eins", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun"]
MEANING = dict(zip(ENGLISH, GERMAN, strict=True))
SPEED = r"^\d[\d ]* lines? · (\d+\.\d+ s|\d+:\d\d) · [\d .]+ lines/s · [\d ]+ source\+target pieces/s$"


class Done(NamedTuple):
    code: int
    stdout: bytes
    stderr: bytes


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "limelight", "translate", str(BUNDLE), "--threads", "1", *map(str, arguments)]


def run(given: bytes, *arguments: object, bundle: Path = BUNDLE) -> Done:
    """The command in this process, which spares it loading torch: the same function, with a file as its standard input."""
    threads = torch.get_num_threads()
    out, err = io.TextIOWrapper(io.BytesIO(), newline="\n"), io.TextIOWrapper(io.BytesIO(), newline="\n")
    line = ["limelight", "translate", str(bundle), *map(str, arguments)]
    with (
        tempfile.TemporaryFile() as stdin,
        mock.patch.object(sys, "argv", line),
        mock.patch.object(sys, "stdin", stdin),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        stdin.write(given)
        stdin.seek(0)
        try:
            main()
            code: Any = 0
        except SystemExit as stopped:
            code = stopped.code
    torch.set_num_threads(threads)
    out.flush()
    err.flush()
    return Done(int(code or 0), out.buffer.getvalue(), err.buffer.getvalue())  # type: ignore[attr-defined]


def started(*arguments: object, **more: Any) -> subprocess.Popen[bytes]:
    pipe = subprocess.PIPE
    return warm_process.Popen(command(*arguments), stdin=pipe, stdout=pipe, stderr=pipe, env=environment(), **more)


def read_line(process: subprocess.Popen[bytes], seconds: float) -> bytes:
    assert process.stdout is not None
    ready, _, _ = select.select([process.stdout], [], [], seconds)
    assert ready, f"no answer after {seconds} s"
    return process.stdout.readline()


def number_lines(count: int, seed: int = 1) -> list[str]:
    draw = Random(seed)
    return [" ".join(draw.choices(ENGLISH, k=draw.randint(1, 6))) for _ in range(count)]


def in_german(line: str) -> str:
    return " ".join(MEANING[word] for word in line.split(" "))


def test_a_translator_that_was_judged_useless_says_so_first_also_when_quiet(tmp_path: Path) -> None:
    known = read(BUNDLE)
    verdict = QualityVerdict(Use.NOT_USABLE, (), ()).headline
    settings = known.settings.changed(trained_on={"verdict": verdict})
    write(tmp_path / "useless", settings, known.weights(), (BUNDLE / "pieces.model").read_bytes())
    told = run(b"one\n", bundle=tmp_path / "useless").stderr.decode().splitlines()
    assert told[0] == f"warning: this translator was judged when it was trained: {verdict}"
    assert b"judged" in run(b"one\n", "-q", bundle=tmp_path / "useless").stderr and b"judged" not in run(b"one\n").stderr


def test_texts_may_be_arguments() -> None:
    done = run(b"", "three seven one", "two")
    assert done.code == 0 and done.stdout.decode() == "drei sieben eins\nzwei\n"
    assert done.stderr == b"", "a speed is of lines"
    assert re.fullmatch(SPEED, run(b"two\n", "-").stderr.decode().strip())


@pytest.mark.process
def test_lines_come_out_in_order_one_for_each() -> None:
    """The command itself, in a pipe."""
    lines = number_lines(400)
    given = "".join(f"{line}\n" for line in lines).encode()
    done = subprocess.run(command("--beam", 1), input=given, capture_output=True, env=environment(), check=False)
    assert done.returncode == 0
    found = done.stdout.decode().split("\n")
    assert found[-1] == "" and len(found) == 401
    right = [one == in_german(line) for one, line in zip(found, lines, strict=False)]
    assert sum(right) >= 390, f"{sum(right)} of 400"
    said = done.stderr.decode().strip().split("\n")  # a busy machine takes long enough to say it on the way, too
    assert all(re.fullmatch(SPEED, line) for line in said) and said[-1].startswith("400 lines"), said


def test_lines_end_at_0x0a_only() -> None:
    """Empty lines, carriage returns, a byte order mark, other ends of lines, no newline at the end."""
    given = "\ufeffone\r\n\n \t\ntwo\u2028three\x85four\x0bfive\rsix\r\n\r\nnine".encode()
    done = run(given)
    lines = done.stdout.decode().split("\n")
    assert given.count(b"\n") == 5 and len(lines) == 7 and lines[-1] == ""
    assert lines[0] == "eins" and lines[1] == lines[2] == lines[4] == "" and lines[5] == "neun"
    assert lines[3].startswith("zwei drei") and lines[3].endswith("sechs")
    assert not re.search("[\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]", done.stdout.decode())


@pytest.mark.slow
@pytest.mark.parametrize(("given", "lines"), [(b"", 0), (b"\n", 1), (b"\n\n", 2), (b"one", 1)])
def test_as_many_lines_come_out_as_go_in(given: bytes, lines: int) -> None:
    done = run(given, "-q")
    assert done.code == 0 and done.stdout.count(b"\n") == lines
    assert done.stderr == b"", "quiet"


def test_a_line_that_is_not_utf8_is_named_after_those_before_it_were_answered() -> None:
    done = run(b"one\ntwo\nthr\xe9e\nfour\n")
    assert done.code == 65
    assert done.stdout.decode() == "eins\nzwei\n"
    assert "line 3 is not UTF-8 at byte 3" in done.stderr.decode()


@pytest.mark.slow
@pytest.mark.parametrize("end", [b"\nfour\n", b""])
def test_a_line_that_is_too_long_is_named_after_those_before_it_were_answered(end: bytes) -> None:
    done = run(b"one\n" * 20_000 + b"x" * (text_lines.LONGEST_LINE + 1) + end, "--beam", 1)
    assert done.code == 65
    assert done.stdout.decode() == "eins\n" * 20_000
    assert "line 20001 is longer than 1 048 576 bytes" in done.stderr.decode()


def test_a_line_may_have_as_many_bytes_as_it_says(tmp_path: Path) -> None:
    for end in (b"\nb\n", b""):
        (tmp_path / "lines").write_bytes(b"a\n" + b"x" * text_lines.LONGEST_LINE + end)
        with (tmp_path / "lines").open("rb") as file:
            texts = [text for chunk in LineReader(file.fileno()).chunks() for text in chunk.texts]
        assert list(map(len, texts)) == [1, text_lines.LONGEST_LINE, 1][: 2 + bool(end)]


def test_a_line_without_an_end_is_not_held(tmp_path: Path) -> None:
    """The reader stops where the line is too long, and leaves the rest of an endless one where it is."""
    (tmp_path / "lines").write_bytes(b"x" * (8 * text_lines.LONGEST_LINE))
    with (tmp_path / "lines").open("rb") as file:
        with pytest.raises(DataError, match="line 1 is longer"):
            list(LineReader(file.fileno()).chunks())
        assert os.lseek(file.fileno(), 0, os.SEEK_CUR) <= text_lines.LONGEST_LINE + text_lines.BLOCK


@pytest.mark.process
@pytest.mark.parametrize(
    ("arguments", "streams", "code", "message"),
    [
        ((), "<&-", 65, "error: standard input is closed; give texts"),
        (("one",), ">&-", 2, "error: standard output is closed"),
        ((), "0>/dev/null", 65, "error: the input cannot be read after line 0 (Bad file descriptor)"),
        (("canary " * 300,), "2>&-", 0, ""),
    ],
)
def test_closed_streams_are_told(arguments: tuple[str, ...], streams: str, code: int, message: str) -> None:
    line = f"{shlex.join(command(*arguments))} {streams}"
    done = subprocess.run(["sh", "-c", line], capture_output=True, env=environment(), check=False)
    assert done.returncode == code and done.stderr.decode().startswith(message)
    assert b"Traceback" not in done.stderr and done.stdout.count(b"\n") == (code == 0)


@pytest.mark.process
def test_someone_who_types_is_answered_at_once() -> None:
    with started("-q") as process:
        assert process.stdin is not None
        for word in ("three", "seven", "one"):
            process.stdin.write(f"{word}\n".encode())
            process.stdin.flush()
            assert read_line(process, 60).decode() == f"{MEANING[word]}\n"
        process.stdin.close()
        assert process.wait(30) == 0


def test_nbest_scores_and_alignments_are_columns_of_a_group_of_lines() -> None:
    done = run(b"three seven one\n\ntwo\n", "--nbest", 3, "--scores", "--align")
    rows = [line.split("\t") for line in done.stdout.decode().split("\n")[:-1]]
    assert len(rows) == 9 and all(len(row) == 3 for row in rows)
    assert rows[0][0] == "drei sieben eins" and rows[6][0] == "zwei"
    assert rows[3:6] == [["", "", ""]] * 3
    scores = [float(row[1]) for row in rows[:3]]
    assert scores == sorted(scores, reverse=True) and scores[0] <= 0
    assert re.fullmatch(r"\d+-\d+( \d+-\d+)*", rows[0][2])
    plain = run(b"three seven one\n", "--nbest", 3)
    assert plain.stdout.decode() == "".join(row[0] + "\n" for row in rows[:3])


def test_jsonl_is_an_object_for_each_line_with_everything() -> None:
    given = "\ufeffthree seven one\r\n\nfive\u2028six\n".encode()
    done = run(given, "--nbest", 2, "--align", "--scores", "--jsonl")
    assert done.code == 0 and done.stdout.count(b"\n") == 3
    assert len(done.stdout.decode().splitlines()) == 3, "nobody may see another end of a line"
    assert "fünf" in done.stdout.decode(), "letters stay letters"
    first, empty, third = (json.loads(line) for line in done.stdout.split(b"\n")[:-1])
    assert first["source"] == "three seven one" and first["text"] == "drei sieben eins"
    assert first["alignment"]["words"] and len(first["alternatives"]) == 1 and first["alternatives"][0]["text"]
    assert {"score", "confidence", "pieces", "finish", "degenerate", "warnings", "source_pieces"} <= first.keys()
    assert empty["finish"] == "empty_input" and empty["text"] == ""
    assert third["source"] == "five\u2028six"


def test_a_prefix_and_a_phrase_are_for_every_line() -> None:
    done = run(b"one\ntwo three\n", "--prefix", "neun", "--phrase", "acht")
    lines = done.stdout.decode().split("\n")[:-1]
    assert all(line.startswith("neun") and "acht" in line for line in lines)


@pytest.mark.slow
def test_drawing_repeats_with_the_same_seed() -> None:
    lines = "".join(f"{line}\n" for line in number_lines(40)).encode()
    hot = ("--sample", "--temperature", 3, "--top-k", 50, "--no-guards")
    first, again, other = (run(lines, *hot, "--seed", seed).stdout for seed in (1, 1, 2))
    assert first == again != other and first.count(b"\n") == 40
    assert run(b"three seven one\n", "--mbr", 8).stdout.decode() == "drei sieben eins\n"


@pytest.fixture(scope="module")
def odd_bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The stored translator with a search that the options have to undo."""
    stored, folder = read(BUNDLE), tmp_path_factory.mktemp("bundle") / "odd"
    search = SearchSettings(beam=4, groups=4, nbest=3, coverage_penalty=0.2, no_repeat_ngram=1)
    write(folder, stored.settings.changed(search=search), stored.weights(), (BUNDLE / "pieces.model").read_bytes())
    return folder


@pytest.mark.parametrize(
    ("arguments", "lines"),
    [
        ((), 3),
        (("--sample", "--seed", 1), 3),
        (("--sample", "--beam", 3), 3),
        (("--nbest", 6), 6),
        (("--beam", 1), 1),
        (("--beam", 3), 3),
        (("--phrase", "acht", "--diverse", 1), 3),
    ],
)
def test_options_undo_the_search_of_the_bundle(odd_bundle: Path, arguments: tuple[object, ...], lines: int) -> None:
    done = run(b"three seven one\n", "-q", *arguments, bundle=odd_bundle)
    assert (done.code, done.stdout.count(b"\n")) == (0, lines), done.stderr.decode()


def test_a_bundle_that_draws_takes_options_of_drawing() -> None:
    drawn = _search(SearchSettings(sampling=Sampling(top_p=0.5)), {}, False, {"seed": 3})
    assert drawn.sampling == Sampling(top_p=0.5, seed=3)


@pytest.mark.parametrize(
    ("default", "wanted", "beam", "nbest", "groups"),
    [
        ({}, {"nbest": 6}, 6, 6, 1),
        ({}, {"groups": 3}, 6, 1, 3),
        ({}, {"groups": 4, "beam": 2}, 4, 1, 4),
        ({"groups": 4}, {"nbest": 6}, 8, 6, 4),
        ({"groups": 4}, {"beam": 6}, 8, 1, 4),
        ({"groups": 4}, {"beam": 1}, 1, 1, 1),
        ({"nbest": 3}, {"beam": 2}, 2, 2, 1),
        ({"nbest": 3}, {"beam": 8}, 8, 3, 1),
    ],
)
def test_what_was_not_asked_for_gives_way(default: dict[str, Any], wanted: dict[str, Any], beam: int, nbest: int, groups: int) -> None:
    search = _search(SearchSettings(**default), wanted, False, {})
    assert (search.beam, search.nbest, search.groups) == (beam, nbest, groups)


@pytest.mark.slow
def test_lengths_and_repeats_are_limited() -> None:
    line = b"three three seven seven one\n"
    pieces = lambda *options: json.loads(run(line, "--jsonl", "--no-guards", *options).stdout)["pieces"]  # noqa: E731
    plain = [piece["text"] for piece in pieces()]
    assert len(plain) > 4 and len(set(plain)) < len(plain)
    assert len(pieces("--max-length", 4)) <= 4
    assert len(pieces("--min-length", len(plain) + 5)) >= len(plain) + 5
    once = [piece["text"] for piece in pieces("--no-repeat", 1)]
    assert len(set(once)) == len(once)


def test_no_repeat_0_allows_what_the_bundle_forbids() -> None:
    assert _search(SearchSettings(no_repeat_ngram=2), {"no_repeat_ngram": 0}, False, {}).no_repeat_ngram is None


def test_the_options_of_the_search_arrive(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[SearchSettings] = []
    plain = Translator.translate

    def watched(self: Translator, texts: list[str], search: SearchSettings, **more: Any) -> list[Translation]:
        seen.append(search)
        return plain(self, texts, search, **more)

    monkeypatch.setattr(Translator, "translate", watched)
    options = "--coverage-penalty 0.3 --diverse 3 --min-length 2 --max-length 50 --no-repeat 4 --length-penalty 1 --nbest 2"
    assert run(b"", "one", *options.split(" ")).code == 0
    wanted = SearchSettings(
        beam=6,
        nbest=2,
        groups=3,
        coverage_penalty=0.3,
        min_length=2,
        max_length=50,
        no_repeat_ngram=4,
        length_penalty=1,
    )
    assert seen[0].model_dump() == wanted.model_dump()


def test_files_in_and_out_and_a_file_appears_when_it_is_complete(tmp_path: Path) -> None:
    source, target = tmp_path / "in", tmp_path / "out"
    source.write_bytes(b"one\ntwo\n")
    done = run(b"", "--input", source, "--output", target)
    assert done.code == 0 and done.stdout == b"" and target.read_bytes().decode() == "eins\nzwei\n"
    source.write_bytes(b"one\n\xff\n")
    target.unlink()
    assert run(b"", "--input", source, "--output", target).code == 65
    assert list(tmp_path.iterdir()) == [source], "neither half a file nor what was beside it"
    assert run(b"one\n", "-o", "/dev/null").code == 0 and Path("/dev/null").is_char_device()
    source.write_bytes(b"one\n")
    (tmp_path / "link").symlink_to(source)
    for same in (source, tmp_path / "link"):
        done = run(b"", "--input", source, "--output", same)
        assert done.code == 2 and "which would be gone" in done.stderr.decode() and source.read_bytes() == b"one\n"


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("one", "--input", "x"), 2, "give one of them"),
        (("--input", "no-such-file"), 65, "cannot be read"),
        (("--input", "."), 65, "is a folder"),
        (("one", "--output", "no-such-folder/x"), 2, "make it first"),
        (("one", "--nbest", "4", "--beam", "2"), 2, "try beam=4"),
        (("one", "--output", "."), 2, "is a folder"),
        (("one", "--output", "x" * 300), 2, "cannot be written"),
        (("one", "--output", "/dev/null/x"), 2, "make it first"),
        (("one", "--seed", "1"), 2, "--seed: only for drawing, and a beam draws nothing; add --sample"),
        (("one", "--top-k", "2", "--top-p", "0.5", "--temperature", "2"), 2, "--temperature, --top-k, --top-p: only"),
        (("one", "--sample", "--diverse", "2"), 2, "leave out one of them"),
        (("one", "--sample", "--coverage-penalty", "0.2"), 2, "leave out one of them"),
        (("one", "--device", "tpu9"), 69, "tpu9"),
        (("one", "--dtype", "int3"), 69, "int3"),
    ],
)
def test_mistakes_have_their_exit_codes(arguments: tuple[str, ...], code: int, message: str) -> None:
    done = run(b"", *arguments)
    assert done.code == code and message in done.stderr.decode()
    assert done.stdout == b""


def test_a_folder_that_is_no_bundle_has_the_code_of_model_files(tmp_path: Path) -> None:
    done = run(b"", "one", bundle=tmp_path)
    assert done.code == 66 and str(tmp_path) in done.stderr.decode()


@pytest.mark.process
def test_a_reader_that_leaves_ends_it_quietly() -> None:
    with started("-q", "--beam", 1) as process:
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        process.stdin.write(b"one\n")
        process.stdin.flush()
        assert read_line(process, 60).decode() == "eins\n"
        process.stdout.close()
        process.stdin.write(b"two\n" * 5000)
        process.stdin.close()
        assert process.wait(60) == 141
        assert process.stderr.read() == b""


@pytest.mark.process
def test_interrupting_ends_it_with_130_and_leaves_no_file(tmp_path: Path) -> None:
    with started("-o", tmp_path / "out", start_new_session=True) as process:
        assert process.stdin is not None and process.stderr is not None
        process.stdin.write(b"one\n")
        process.stdin.flush()
        until = time.monotonic() + 60
        while not any(path.stat().st_size for path in tmp_path.iterdir()) and time.monotonic() < until:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130
        assert b"Traceback" not in process.stderr.read()
    assert list(tmp_path.iterdir()) == []


def test_warnings_name_the_line_and_never_the_text() -> None:
    done = run(b"one\n" + b"canary " * 300 + b"\n", "-q")
    told = done.stderr.decode()
    assert done.code == 0
    assert "warning: line 2: split:" in told and "canary" not in told and "line 1:" not in told


@pytest.mark.slow
def test_many_warnings_are_counted_instead_of_printed() -> None:
    done = run((b"canary " * 200 + b"\n") * 30, "-q", "--beam", 1)
    told = done.stderr.decode().split("\n")[:-1]
    assert len(told) == 22 and told[-2].startswith("warning: there are more")
    assert re.search(r"warnings: .*30 split", told[-1])


@pytest.mark.long
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from /proc, which Linux has")
def test_memory_does_not_grow_with_the_input(tmp_path: Path) -> None:
    """4 times the lines, the same peak: what waits is bounded."""
    peaks = {}
    for count in (5_000, 20_000):
        path = tmp_path / str(count)
        path.write_bytes("".join(f"{line}\n" for line in number_lines(500) * (count // 500)).encode())
        told = tmp_path / "peak"
        arguments = [
            "translate",
            BUNDLE,
            "--threads",
            1,
            "--beam",
            1,
            "--no-guards",
            "-q",
            "-i",
            path,
            "-o",
            tmp_path / "o",
        ]
        line = [sys.executable, "-c", MEASURED, *map(str, arguments), str(told)]
        done = subprocess.run(line, capture_output=True, env=environment(), check=False)
        assert done.returncode == 0, done.stderr.decode()
        assert (tmp_path / "o").read_bytes().count(b"\n") == count
        peaks[count] = int(told.read_bytes()) / 1024
    assert peaks[20_000] <= peaks[5_000] + 30, peaks


@pytest.mark.process
def test_chunks_follow_the_speed_of_the_translation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All that is there up to a few seconds' worth: few lines of a slow translator, thousands of a fast one. None is lost."""
    path = tmp_path / "lines"
    path.write_bytes(b"".join(b"%d\n" % i for i in range(20_000)))
    now = 0.0
    monkeypatch.setattr(text_lines, "time", SimpleNamespace(monotonic=lambda: now))
    for seconds_per_line, most in ((1.0, 256), (0.005, 1000), (0.0, 4096)):
        with path.open("rb") as file:
            chunks = []
            for chunk in LineReader(file.fileno()).chunks():
                time.sleep(0.01)  # time for the reader to fill what was taken
                now += seconds_per_line * len(chunk.texts)
                chunks.append(chunk)
        assert [text for chunk in chunks for text in chunk.texts] == [str(i) for i in range(20_000)]
        assert [chunk.first for chunk in chunks] == [1 + int(chunk.texts[0]) for chunk in chunks]
        assert max(len(chunk.texts) for chunk in chunks) == most and chunks[-1].bytes == path.stat().st_size


@pytest.mark.process
def test_a_terminal_gets_a_hint_and_an_answer() -> None:
    ours, theirs = pty.openpty()
    with tempfile.TemporaryFile() as out:
        process = warm_process.Popen(command(), stdin=theirs, stdout=out, stderr=theirs, env=environment(TERM="xterm"))
        os.close(theirs)
        os.write(ours, b"three\n\x04")
        assert process.wait(60) == 0
        out.seek(0)
        assert out.read().decode() == "drei\n"
    assert b"Ctrl-D" in os.read(ours, 10_000)
    os.close(ours)


def test_speed_is_told_while_it_runs(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(output, "SAID_EVERY", 0.0)
    account = TranslateProgress(quiet=False, total_bytes=4000)
    account.tell()
    account.add(1, [nothing("")] * 500, seconds=2.0, done_bytes=1000)
    account.tell()
    account.add(501, [nothing("")] * 500, seconds=2.0, done_bytes=2000)
    account.tell()
    account.close()
    first, second, last = capfd.readouterr().err.split("\n")[:-1]
    assert first == "500 lines · 2.0 s · 250 lines/s · 0 source+target pieces/s · about 0:06 left"
    assert second.endswith("about 0:04 left") and last == "1 000 lines · 4.0 s · 250 lines/s · 0 source+target pieces/s"


@pytest.mark.slow
def test_a_document_is_translated_in_its_place(tmp_path: Path) -> None:
    source, target = tmp_path / "a.html", tmp_path / "b.html"
    source.write_bytes(b"<p class='x'>three <b>seven</b> one</p>\n<pre>three</pre>\n")
    done = run(b"", "--document", str(source), str(target))
    assert done.code == 0 and b"b.html" in done.stderr and not done.stdout
    page = target.read_bytes()
    assert page.startswith(b"<p class='x'>") and page.endswith(b"</p>\n<pre>three</pre>\n") and page != source.read_bytes()


def test_a_document_refuses_what_is_for_lines(tmp_path: Path) -> None:
    source = tmp_path / "a.txt"
    source.write_bytes(b"three\n")
    done = run(b"", "--document", str(source), str(tmp_path / "b.txt"), "--nbest", 3, "--scores")
    assert done.code == 2 and b"--nbest" in done.stderr and b"--scores" in done.stderr
    assert run(b"", "--document", str(source)).code == 2
    assert not (tmp_path / "b.txt").exists()


def test_terms_of_a_glossary_are_used(tmp_path: Path) -> None:
    terms = tmp_path / "terms.tsv"
    terms.write_bytes(b"seven\tneun\n")
    assert b"neun" not in run(b"three seven one\n").stdout
    assert b"neun" in run(b"three seven one\n", "--glossary", str(terms)).stdout
