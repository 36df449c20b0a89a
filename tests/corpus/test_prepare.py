"""`prepare` as a whole: the same bytes from every engine, nothing done twice, and any interruption healed by running it again."""

import gzip
import io
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from corpus_battery import dropped_places, tmx
from made_sentences import sentences
from prepare_command import (
    FAST,
    command,
    environment,
    given_pieces,
    here,
    outside,
    pieces_model,
    write_lines,
    write_pairs,
)
from sentencepiece import SentencePieceTrainer

from limelight.corpus import inputs
from limelight.corpus import prepare as whole
from limelight.corpus.config import CorpusSettings, PrepareSettings
from limelight.corpus.exchange import engine_local
from limelight.corpus.exchange.engine import ExchangeEngine, Progress
from limelight.corpus.exchange.engine_local import LocalEngine
from limelight.corpus.exchange.finish import read_held_out
from limelight.corpus.feeding.shards import PreparedCorpus
from limelight.corpus.manifest import CorpusManifest
from limelight.corpus.prepare import prepare
from limelight.corpus.reading.raw import CorpusPart
from limelight.errors import DataError, LimelightError
from limelight.text.pieces.tokenizer import Tokenizer


def silent(_: Progress) -> None:
    pass


def local(workers: int) -> ExchangeEngine:
    return LocalEngine(workers)


@pytest.fixture(autouse=True)
def no_pictures(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """They take longer to draw than these corpora to prepare. The slow tests draw them."""
    if request.node.get_closest_marker("slow") is None:
        monkeypatch.setattr(whole, "page", lambda manifest: "")


@pytest.fixture
def several_buckets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small packed files fill several buckets, and a part has several chunks."""
    monkeypatch.setattr(inputs, "UNPACKED", 600)
    monkeypatch.setattr(engine_local, "CHUNK_ROWS", 100)


def three_corpora(folder: Path) -> PrepareSettings:
    """Lines in gzip, TSV and TMX, with duplicates within and between them, faults, blank lines, and a given test set that leaks."""
    made = sentences(540)
    news = [(s.encode(), t.encode()) for s, t in made[:330] + made[30:100]]
    news[5], news[200], news[300] = (b"\xff", b"broken"), (b"", b"empty"), (b"a b c d e f", b"a b c d e f")
    for side, path in enumerate(write_lines([s for s, _ in news], [t for _, t in news], folder, "news")):
        path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(b"".join(pair[side] + b"\n" for pair in news), mtime=0))
        path.unlink()
    law = [f"{s}\t{t}" for s, t in made[300:430]]
    law[7] = "one column"
    (folder / "law.tsv").write_bytes("".join(f"{line}\n" for line in law).encode())
    (folder / "memory.tmx").write_bytes(tmx("", made[400:500]))
    test = write_pairs([*made[520:540], *made[6:10]], folder, "held")
    corpora = {"news": ["news.en.gz", "news.de.gz"], "law": ["law.tsv"], "memory": ["memory.tmx"]}
    return PrepareSettings(
        languages=("en", "de"),
        corpora=[CorpusSettings(name=name, paths=[str(folder / file) for file in files]) for name, files in corpora.items()],
        filters={"wrong_language": "off"},  # type: ignore[arg-type]
        held_out={"test": tuple(map(str, test)), "valid_pairs": 40},  # type: ignore[arg-type]
        given_pieces=[str(pieces_model())],
        keep_dropped=True,
        shard_megabytes=1,
    )


def with_learnt_pieces(settings: PrepareSettings) -> PrepareSettings:
    return settings.changed(given_pieces=[], pieces=settings.pieces.changed(size=500, sample=300))


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def same_content(one: Path, other: Path) -> None:
    """File by file, byte by byte."""
    a, b = content(one), content(other)
    assert list(a) == list(b)
    assert [name for name in a if a[name] != b[name]] == []


@pytest.mark.slow
@pytest.mark.usefixtures("several_buckets")
def test_the_corpus_of_these_tests_has_everything(tmp_path: Path) -> None:
    manifest, before = prepare(three_corpora(tmp_path), tmp_path / "out", local(0), silent)
    assert not before and len(manifest.splits["train"]) > 2
    assert [corpus.name for corpus in manifest.corpora] == ["news", "law", "memory", "test"]
    assert [corpus.read for corpus in manifest.corpora] == [400, 130, 100, 24]
    reasons = {reason for corpus in manifest.corpora for reason in corpus.dropped}
    assert {"duplicate", "broken_text", "empty", "malformed", "leak", "copied"} <= reasons
    assert all(shard.rows for shard in manifest.splits["train"]) and sum(s.rows for s in manifest.splits["test"]) == 24
    assert 0 < sum(shard.rows for shard in manifest.splits["valid"]) <= 40


@pytest.mark.process
@pytest.mark.usefixtures("several_buckets")
@pytest.mark.parametrize("workers", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_any_number_of_workers_leaves_the_same_bytes(workers: int, tmp_path: Path) -> None:
    settings = three_corpora(tmp_path)
    prepare(settings, tmp_path / "alone", local(0), silent)
    prepare(settings, tmp_path / "many", local(workers), silent)
    same_content(tmp_path / "alone", tmp_path / "many")


CLUSTER = """
import json, sys
from pathlib import Path
from limelight.corpus import inputs
from limelight.corpus.config import PrepareSettings
from limelight.corpus.exchange import engine_local
from limelight.corpus.exchange.engine_ray import RayEngine
from limelight.corpus.prepare import prepare

def hear(progress):
    if progress.step == "settle":
        print(progress.done, flush=True)
        if progress.done == int(sys.argv[3]):
            raise KeyboardInterrupt

inputs.UNPACKED, engine_local.CHUNK_ROWS = 600, 100
prepare(PrepareSettings.load(Path(sys.argv[1])), Path(sys.argv[2]), RayEngine(), hear)
"""


@pytest.mark.process
@pytest.mark.slow
@pytest.mark.usefixtures("several_buckets")
def test_a_cluster_leaves_the_same_bytes_and_goes_on_by_bucket(tmp_path: Path) -> None:
    """Processes of their own: Ray ends the one it was begun in when a node of it dies."""

    def prepare_in_cluster(last: int) -> tuple[int, list[int]]:
        words = [sys.executable, "-c", CLUSTER, str(tmp_path / "settings.toml"), str(tmp_path / "cluster"), str(last)]
        done = subprocess.run(words, stdout=subprocess.PIPE, timeout=300)
        return done.returncode, [int(line) for line in done.stdout.split() if line.isdigit()]

    settings = with_learnt_pieces(three_corpora(tmp_path))
    settings.save(tmp_path / "settings.toml")
    prepare(settings, tmp_path / "alone", local(0), silent)
    assert prepare_in_cluster(2)[0], "stopped in the middle"
    assert len(list((tmp_path / "cluster").glob(".work/*/outcomes/*.json"))) == 2
    code, settled = prepare_in_cluster(-1)
    assert code == 0 and settled[0] == 2 and settled == sorted(set(settled)), (
        "two buckets were there, and each of the others was settled once"
    )
    same_content(tmp_path / "alone", tmp_path / "cluster")


# Nothing is done twice.


def times(folder: Path) -> dict[str, int]:
    return {str(path): path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


def test_the_same_again_touches_nothing(tmp_path: Path) -> None:
    settings = three_corpora(tmp_path)
    first, before = prepare(settings, tmp_path / "out", local(0), silent)
    written = times(tmp_path / "out")
    second, again = prepare(settings, tmp_path / "out", local(0), silent)
    assert (before, again) == (False, True) and first == second and times(tmp_path / "out") == written


def test_a_renamed_copy_of_the_input_is_the_same_input(tmp_path: Path) -> None:
    settings = three_corpora(tmp_path)
    first, _ = prepare(settings, tmp_path / "out", local(0), silent)
    (tmp_path / "elsewhere").mkdir()
    moved = []
    for corpus in settings.corpora:
        names = [tmp_path / "elsewhere" / f"x{Path(path).name}" for path in corpus.paths]
        for path, name in zip(corpus.paths, names, strict=True):
            shutil.copy(path, name)
        moved.append(corpus.changed(paths=[str(name) for name in names]))
    again, there = prepare(settings.changed(corpora=moved), tmp_path / "out", local(0), silent)
    assert there and again == first


def test_a_set_to_validate_on_is_no_test_set(tmp_path: Path) -> None:
    settings = three_corpora(tmp_path)
    paths = tuple(settings.corpora[0].paths)
    told = []
    for given in ({"valid": paths}, {"test": paths}, {"valid": paths, "test": paths}):
        asked = settings.changed(held_out=settings.held_out.changed(**given))
        told.append(whole.addresses(asked, inputs.Inputs.find(asked)))
    assert len(set(told)) == 3


def test_guesses_and_cut_lines_are_no_references(tmp_path: Path) -> None:
    (tmp_path / "de.po").write_text(
        'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n\n#, fuzzy\nmsgid "Close"\nmsgstr "Auf"\n\n'
        'msgid "Open"\nmsgstr "Auf"\n'
    )
    (tmp_path / "long.tsv").write_text("a" * 1_500_000 + "\tKurz.\nYes.\tJa.\n")
    for name, kind, kept in (("de.po", "po", ["Open"]), ("long.tsv", "tsv", ["Yes."])):
        part = CorpusPart(0, 0, kind, (str(tmp_path / name),), ("en", "de"))
        table, counted = read_held_out([part], three_corpora(tmp_path), "test")
        assert table.column("source").to_pylist() == kept and counted


@pytest.mark.slow
def test_other_content_and_other_settings_are_other_addresses(tmp_path: Path) -> None:
    settings = three_corpora(tmp_path)
    prepare(settings, tmp_path / "out", local(0), silent)
    for changed in (settings.changed(seed=18), settings.changed(filters=settings.filters.changed(copied="off"))):
        with pytest.raises(DataError, match="--force"):
            prepare(changed, tmp_path / "out", local(0), silent)
    with Path(settings.corpora[1].paths[0]).open("ab") as file:
        file.write(b"one more\teine mehr\n")
    with pytest.raises(DataError, match="--force"):
        prepare(settings, tmp_path / "out", local(0), silent)
    manifest, there = prepare(settings, tmp_path / "out", local(0), silent, force=True)
    assert not there and manifest.corpora[1].read == 131
    same_as_new(settings, tmp_path)


def same_as_new(settings: PrepareSettings, folder: Path) -> None:
    prepare(settings, folder / "new", local(0), silent)
    same_content(folder / "out", folder / "new")


@pytest.mark.slow
@pytest.mark.usefixtures("several_buckets")
def test_other_pieces_reuse_the_text(tmp_path: Path) -> None:
    settings = with_learnt_pieces(three_corpora(tmp_path))
    first, _ = prepare(settings, tmp_path / "out", local(0), silent)
    texts = {path: when for path, when in times(tmp_path / "out").items() if path.endswith(".text.arrow")}
    changed = settings.changed(pieces=settings.pieces.changed(size=450))
    with pytest.raises(DataError, match="--force"):
        prepare(changed, tmp_path / "out", local(0), silent)
    second, there = prepare(changed, tmp_path / "out", local(0), silent, force=True)
    assert not there and second.text_address == first.text_address and second.address != first.address
    assert texts.items() <= times(tmp_path / "out").items()
    same_as_new(changed, tmp_path)


@pytest.mark.slow
def test_replacing_joint_pieces_by_separate_ones_leaves_what_the_manifest_names(tmp_path: Path) -> None:
    settings = with_learnt_pieces(three_corpora(tmp_path))
    prepare(settings, tmp_path / "out", local(0), silent)
    separate = settings.changed(pieces=settings.pieces.changed(joint=False))
    prepare(separate, tmp_path / "out", local(0), silent, force=True)
    same_as_new(separate, tmp_path)


@pytest.mark.slow
def test_replacing_a_larger_corpus_leaves_none_of_its_dropped_pairs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = three_corpora(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(inputs, "UNPACKED", 600)
        prepare(settings, tmp_path / "out", local(0), silent)
    manifest, _ = prepare(settings.changed(seed=3), tmp_path / "out", local(0), silent, force=True)
    files = sorted(path.name for path in (tmp_path / "out" / "dropped").iterdir())
    assert files == [f"{bucket:05d}.jsonl" for bucket in range(len(manifest.splits["train"]))]


# Interrupted at any moment.


class StoppedError(Exception):
    pass


def stop_at(calls: int) -> Callable[[Progress], None]:
    left = iter(range(calls))

    def watch(_: Progress) -> None:
        if next(left, None) is None:
            raise StoppedError

    return watch


@pytest.mark.slow
@pytest.mark.usefixtures("several_buckets")
def test_an_interrupted_run_goes_on_and_ends_with_the_same_bytes(tmp_path: Path) -> None:
    """Stopped again and again, two steps further each time, until it comes through."""
    settings = three_corpora(tmp_path)
    prepare(settings, tmp_path / "undisturbed", local(0), silent)
    stops, done = 0, False
    while not done:
        stops += 1
        try:
            prepare(settings, tmp_path / "out", local(0), stop_at(2 * stops))
            done = True
        except StoppedError:
            assert not (tmp_path / "out" / "manifest.json").exists()
    assert stops >= 6
    same_content(tmp_path / "undisturbed", tmp_path / "out")


@pytest.mark.slow
@pytest.mark.usefixtures("several_buckets")
def test_an_interrupted_run_reads_no_part_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = three_corpora(tmp_path)

    def until_settling(progress: Progress) -> None:
        if progress.step == "settle":
            raise StoppedError

    with pytest.raises(StoppedError):
        prepare(settings, tmp_path / "out", local(0), until_settling)
    monkeypatch.setattr(engine_local, "read", lambda *_: pytest.fail("this part was read before"))
    prepare(settings, tmp_path / "out", local(0), silent)


def lose_chunk(chunks: Path) -> None:
    sorted(chunks.glob("chunk-*.arrow"))[1].unlink()


def cut_chunk(chunks: Path) -> None:
    path = sorted(chunks.glob("chunk-*.arrow"))[1]
    path.write_bytes(path.read_bytes()[:-100])


@pytest.mark.slow
@pytest.mark.usefixtures("several_buckets")
@pytest.mark.parametrize(
    "damage",
    [lose_chunk, cut_chunk],
)
def test_damage_to_what_an_interrupted_run_left_is_noticed(damage: Callable[[Path], None], tmp_path: Path) -> None:
    """Either an error that says so, or the chunk is made again."""
    settings = three_corpora(tmp_path)
    prepare(settings, tmp_path / "undisturbed", local(0), silent)

    def until_settling(progress: Progress) -> None:
        if progress.step == "settle":
            raise StoppedError

    with pytest.raises(StoppedError):
        prepare(settings, tmp_path / "out", local(0), until_settling)
    damage(next((tmp_path / "out" / ".work").iterdir()) / "chunks")
    try:
        prepare(settings, tmp_path / "out", local(0), silent)
    except LimelightError:
        return
    same_content(tmp_path / "undisturbed", tmp_path / "out")


def big(folder: Path, pairs: int) -> list[Any]:
    paths = write_pairs(sentences(pairs), folder)
    return ["prepare", *paths, "filters.wrong_language=off", "shard_megabytes=2", given_pieces(), "--keep-dropped"]


@pytest.mark.long
@pytest.mark.process
@pytest.mark.slow
def test_a_run_that_is_killed_three_times_ends_with_the_same_bytes(tmp_path: Path) -> None:
    """kill -9 to the command and its workers: once before anything is written, then soon after each first new chunk."""
    arguments, chance = [*big(tmp_path, 200_000), "--workers", 1], random.Random(3)
    assert outside(*arguments, "-o", tmp_path / "undisturbed").code == 0
    for expected in (0, 1, 2):
        run = subprocess.Popen(
            command(*arguments, "-o", tmp_path / "out"),
            env=environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        while run.poll() is None and chunks(tmp_path / "out") < expected:
            time.sleep(0.01)
        time.sleep(chance.uniform(0.0, 0.1))
        assert run.poll() is None, "it came through before it was killed"
        os.killpg(run.pid, signal.SIGKILL)
        run.wait()
    assert chunks(tmp_path / "out") > 0
    assert outside(*arguments, "-o", tmp_path / "out").code == 0
    same_content(tmp_path / "undisturbed", tmp_path / "out")
    PreparedCorpus.open(tmp_path / "out")


def chunks(folder: Path) -> int:
    """While folders come and go, which `rglob` does not bear."""
    return sum(name.endswith(".arrow") for _, _, names in os.walk(folder) for name in names)


def children(pid: int) -> list[int]:
    listed = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(child) for child in listed.read_bytes().split()] if listed.exists() else []


@pytest.mark.process
@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs /proc")
def test_workers_end_when_the_command_is_killed(tmp_path: Path) -> None:
    run = subprocess.Popen(
        command(*big(tmp_path, 100_000), "--workers", 2, "-o", tmp_path / "out"),
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    workers: list[int] = []
    try:
        until = time.monotonic() + 60
        while not list((tmp_path / "out").rglob("chunk-*.arrow")) and time.monotonic() < until:
            time.sleep(0.05)
        workers = children(run.pid)
        assert len(workers) >= 2
        run.kill()
        run.wait()
        until = time.monotonic() + 15
        while any(map(_alive, workers)) and time.monotonic() < until:
            time.sleep(0.1)
        assert not list(filter(_alive, workers))
    finally:
        for worker in filter(_alive, workers):
            os.kill(worker, signal.SIGKILL)
        run.kill()
        run.wait()


def _alive(pid: int) -> bool:
    status = Path(f"/proc/{pid}/stat")
    try:
        return status.read_bytes().rpartition(b")")[2].split()[0] != b"Z"
    except OSError:
        return False


# A full disk.


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    if os.geteuid() != 0 or not shutil.which("mount"):
        pytest.skip("only root may mount a small disk")
    place = tmp_path / "disk"
    place.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", place], check=False).returncode:
        pytest.skip("this machine does not let us mount a small disk")
    yield place
    subprocess.run(["umount", "-l", place], check=True)


def resize(place: Path, kilobytes: int) -> None:
    subprocess.run(["mount", "-o", f"remount,size={kilobytes}k", place], check=True)


@pytest.mark.process
@pytest.mark.parametrize(
    "more",
    [(), ("--keep-dropped", "dedup.near=true")],
)
def test_a_full_disk_is_exit_74_and_the_run_goes_on_when_there_is_room(more: tuple[str, ...], small_disk: Path, tmp_path: Path) -> None:
    """The disk grows step by step, so that it is full at another moment each time: chunks, shards, pieces, ids, the manifest."""
    made = sentences(1_500)
    paths = write_pairs([*made, *((s.upper(), t.upper()) for s, t in made)], tmp_path)
    arguments = ["prepare", *paths, *FAST, given_pieces(), "--json", *more]
    code, full = 74, 0
    for kilobytes in (64, *range(200, 4_000, 150)):
        resize(small_disk, kilobytes)
        outcome = here(*arguments, "-o", small_disk / "out")
        code = outcome.code
        if code == 0:
            break
        full += 1
        assert code == 74, outcome.err
        assert "No space left" in outcome.err and "make room" in outcome.err and "Traceback" not in outcome.err
        assert outcome.out == "" and not (small_disk / "out" / "manifest.json").exists()
    assert code == 0 and full >= 4
    assert here(*arguments, "-o", tmp_path / "roomy").code == 0
    same_content(tmp_path / "roomy", small_disk / "out")


@pytest.mark.process
@pytest.mark.slow
def test_a_full_disk_ends_the_real_command_with_74(small_disk: Path, tmp_path: Path) -> None:
    resize(small_disk, 300)
    paths = write_pairs(sentences(3_000), tmp_path)
    outcome = outside("prepare", *paths, FAST[0], "--workers", 1, given_pieces(), "-o", small_disk / "out")
    assert outcome.code == 74, outcome.err
    assert "No space left" in outcome.err and "Traceback" not in outcome.err


# What is asked for is what comes out.


def test_given_sets_are_kept_as_they_are_and_out_of_training(tmp_path: Path) -> None:
    made = sentences(300)
    train = write_pairs(made[:280], tmp_path)
    valid, test = write_pairs(made[250:290], tmp_path, "valid"), write_pairs(made[290:], tmp_path, "test")
    outcome = here(
        "prepare", *train, *FAST, given_pieces(), "-o", tmp_path / "out", "--json",
        "--valid", valid[0], "--valid", valid[1], "--test", test[0], "--test", test[1],
    )  # fmt: skip
    assert outcome.code == 0, outcome.err
    prepared = PreparedCorpus.open(tmp_path / "out")
    texts = {split: prepared.split(split).texts(range_of(prepared, split)) for split in prepared.manifest.splits}
    found = {split: set(zip(source.to_pylist(), target.to_pylist(), strict=True)) for split, (source, target) in texts.items()}
    assert found == {"train": set(made[:250]), "valid": set(made[250:290]), "test": set(made[290:])}
    assert outcome.report["corpora"][0]["dropped"] == {"leak": 30}


def range_of(prepared: PreparedCorpus, split: Any) -> Any:
    import numpy as np

    return np.arange(prepared.split(split).rows)


@pytest.mark.parametrize("joint", [True, False])
def test_one_vocabulary_or_two(joint: bool, tmp_path: Path) -> None:
    paths = write_pairs(sentences(400), tmp_path)
    asked = (f"pieces.joint={str(joint).lower()}", "--vocab-size", 420)
    outcome = here("prepare", *paths, *FAST, *asked, "-o", tmp_path / "out", "--json")
    assert outcome.code == 0, outcome.err
    names = ["pieces.model"] if joint else ["source.model", "target.model"]
    assert [entry["path"] for entry in outcome.report["pieces"]] == names
    assert sorted(path.name for path in (tmp_path / "out").glob("*.model")) == names
    pairs = PreparedCorpus.open(tmp_path / "out").split("train")
    models = [Tokenizer.load(tmp_path / "out" / name) for name in (names[0], names[-1])]
    assert outcome.report["vocab_sizes"] == [model.size for model in models]
    everything = range_of(pairs.prepared, "train")
    for ids, texts, model in zip(pairs.ids(everything), pairs.texts(everything), models, strict=True):
        rows = [ids.values[a:b].tolist() for a, b in zip(ids.offsets[:-1], ids.offsets[1:], strict=True)]
        assert model.decode(rows) == texts.to_pylist()


def test_separate_given_pieces_serve_their_side(tmp_path: Path) -> None:
    paths = write_pairs(sentences(100), tmp_path)
    other = tmp_path / "other.model"
    assert here("prepare", *paths, *FAST, "--vocab-size", 400, "-o", tmp_path / "first", "--json").code == 0
    shutil.copy(tmp_path / "first" / "pieces.model", other)
    given = f'given_pieces=["{pieces_model()}", "{other}"]'
    outcome = here("prepare", *paths, *FAST, given, "-o", tmp_path / "out", "--json")
    assert outcome.code == 0, outcome.err
    assert (tmp_path / "out" / "source.model").read_bytes() == pieces_model().read_bytes()
    assert (tmp_path / "out" / "target.model").read_bytes() == other.read_bytes()
    assert outcome.report["vocab_sizes"] == [Tokenizer.load(pieces_model()).size, Tokenizer.load(other).size]


def test_given_pieces_with_other_special_ids_are_refused_before_anything_is_read(tmp_path: Path) -> None:
    """As SentencePiece numbers them by itself: unknown 0, start 1, end 2, no pad."""
    model = io.BytesIO()
    SentencePieceTrainer.train(
        sentence_iterator=iter(["a b c d e f"] * 9),
        model_writer=model,
        vocab_size=20,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    (tmp_path / "other.model").write_bytes(model.getvalue())
    paths = write_pairs(sentences(20), tmp_path)
    outcome = here("prepare", *paths, *FAST, f'given_pieces=["{tmp_path / "other.model"}"]', "-o", tmp_path / "out")
    assert outcome.code == 65
    assert "(-1, 0, 1, 2)" in outcome.err
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
@pytest.mark.usefixtures("several_buckets")
def test_dropped_pairs_are_written_with_their_reason_and_place(tmp_path: Path) -> None:
    settings = three_corpora(tmp_path)
    manifest, _ = prepare(settings, tmp_path / "out", local(0), silent)
    counted = {(corpus.name, why): pairs for corpus in manifest.corpora for why, pairs in corpus.dropped.items()}
    rows = [json.loads(line) for path in (tmp_path / "out" / "dropped").iterdir() for line in path.read_bytes().split(b"\n") if line]
    written: dict[tuple[str, str], int] = {}
    for row in rows:
        written[row["corpus"], row["reason"]] = written.get((row["corpus"], row["reason"]), 0) + 1
    assert written == counted
    assert sorted(line for file, line in dropped_places(tmp_path, "malformed")) == [8]
    assert [row["source"] for row in rows if row["reason"] == "copied"] == ["a b c d e f"]


def test_a_check_writes_nothing_and_finds_the_same(tmp_path: Path) -> None:
    lines = [(s.encode(), t.encode()) for s, t in sentences(60)]
    lines[3] = (b"", b"nothing")
    paths = write_lines([s for s, _ in lines], [t for _, t in lines], tmp_path / "in")
    before = content(tmp_path)
    checked = here("prepare", *paths, *FAST, "-o", tmp_path / "out", "--check-only", "--json")
    assert checked.code == 0 and content(tmp_path) == before and not (tmp_path / "out").exists()
    real = here("prepare", *paths, *FAST, given_pieces(), "-o", tmp_path / "out", "--json")
    assert checked.report["corpora"] == real.report["corpora"]
    assert checked.report["corpora"][0]["dropped"] == {"empty": 1}


def test_a_damaged_folder_is_not_taken_for_a_prepared_one(tmp_path: Path) -> None:
    paths = write_pairs(sentences(60), tmp_path)
    arguments = ["prepare", *paths, *FAST, given_pieces(), "-o", tmp_path / "out", "--json"]
    assert here(*arguments).code == 0
    entry = CorpusManifest.load(tmp_path / "out").splits["train"][0].text
    (tmp_path / "out" / entry.path).unlink()
    if here(*arguments).code == 0:
        PreparedCorpus.open(tmp_path / "out")
