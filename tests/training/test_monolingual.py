"""Monolingual text: lines are counted, translated once, and weighed; a run that is killed in any stage goes on to the same bits."""

import gzip
import hashlib
import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow.parquet as pq
import pytest
from small_runs import DONE, PROCESSES, Sender, Signal, data, make_corpus, remains, story, wrap

from limelight.bundle import read
from limelight.bundle.layout import CARD
from limelight.corpus.config import PrepareSettings
from limelight.corpus.exchange.engine_local import LocalEngine
from limelight.corpus.feeding.shards import PreparedCorpus
from limelight.decoding.config import SearchSettings
from limelight.errors import ConfigError, DataError
from limelight.text.pieces.tags import SYNTHETIC
from limelight.training.recipe import monolingual
from limelight.training.recipe.monolingual import COUNTS, PAIRS, PARTS, BackTranslator, MonoText, SyntheticCounts, draw_lines, list_counts
from limelight.training.recipe.request import TrainRequest, TrainResult
from limelight.training.run import leader
from limelight.training.run import run as runs
from limelight.training.run.rounds import Rounds, refuse_sharing
from limelight.training.run_folder import PREPARED, REPORT_MD, read_status

pytestmark = pytest.mark.slow

OFF = dict.fromkeys(("wrong_language", "length_ratio", "repetition", "copied", "wrong_script"), "off")


def settings(*languages: str, **filters: str) -> PrepareSettings:
    corpora = [{"name": "c", "paths": ["c.tsv"]}]
    return PrepareSettings(languages=languages or ("en", "de"), corpora=corpora, filters={"wrong_language": "off", **filters})


def write(path: Path, lines: Sequence[str]) -> str:
    path.write_bytes("".join(f"{line}\n" for line in lines).encode())
    return str(path)


# Lines.


def test_lines_are_drawn_once_each_and_counted(tmp_path: Path) -> None:
    lines = [f"Das ist Zeile Nummer {number}." for number in range(50)]
    path = write(tmp_path / "a.de", [*lines, "", lines[0], "x" * 2000, "kaputt \x01"])
    (tmp_path / "b.de.gz").write_bytes(gzip.compress(f"{lines[1]}\nEine neue Zeile.\n".encode()))
    counts = SyntheticCounts(("en", "de"))
    drawn = draw_lines([path, str(tmp_path / "b.de.gz")], settings(), False, counts)
    assert sorted(drawn) == sorted([*lines, "Eine neue Zeile."])
    assert drawn != sorted(drawn) and drawn != [*lines, "Eine neue Zeile."]  # in an order of their own: a part is a random part
    assert counts.read == 56 and counts.dropped == {"empty": 1, "duplicate": 2, "too_long": 1, "broken_text": 1}
    assert counts.read == len(drawn) + sum(counts.dropped.values())


def test_a_foreign_file_beside_a_good_one_is_refused_by_name(tmp_path: Path) -> None:
    good = write(tmp_path / "good.de", [f"Der Hund {number} läuft über die grüne Wiese nach Hause." for number in range(300)])
    wrong = write(tmp_path / "wrong.de", [f"The dog {number} runs across the green meadow and goes home." for number in range(200)])
    asked = settings(wrong_language="drop")
    with pytest.raises(DataError) as refused:
        draw_lines([good, wrong], asked, False, SyntheticCounts(("en", "de")))
    assert wrong in str(refused.value) and good not in str(refused.value)
    assert len(draw_lines([good, wrong], asked, True, SyntheticCounts(("en", "de")))) >= 300


def test_more_lines_than_are_held_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(monolingual, "MOST_LINES", 10)
    counts = SyntheticCounts(("en", "de"))
    path = write(tmp_path / "a.de", [f"Das ist Zeile Nummer {number}." for number in range(25)])
    assert len(draw_lines([path], settings(), False, counts)) == 10
    assert counts.dropped == {"no_room": 15}


def test_text_that_leaves_nothing_or_is_foreign_is_refused_with_counts(tmp_path: Path) -> None:
    empty = write(tmp_path / "a.de", ["", " "])
    with pytest.raises(DataError, match=r"too little text in de: 2 lines read, 0 translated, 0 kept; dropped: empty 2.*one sentence"):
        draw_lines([empty], settings(), True, SyntheticCounts(("en", "de")))
    greek = write(tmp_path / "b.de", ["これは文です。", "これも文です。", "Das ist ein Satz."])
    with pytest.raises(DataError, match=r"wrong script 2.*--anyway"):
        draw_lines([greek], settings(), False, SyntheticCounts(("en", "de")))
    assert draw_lines([greek], settings(), True, SyntheticCounts(("en", "de"))) == ["Das ist ein Satz."]


# Translating.


class Stub:
    """A translator that answers by rule, and counts what it was asked."""

    settings = SimpleNamespace(search=SearchSettings(beam=4), trained_on=None)

    def __init__(self, most: int = 10**9) -> None:
        self.asked, self.most = 0, most

    def __enter__(self) -> "Stub":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def translate(self, lines: Sequence[str], search: SearchSettings, guards: bool) -> list[Any]:
        assert not guards and search.beam == 1
        self.asked += len(lines)
        if self.asked > self.most:
            raise KeyboardInterrupt
        return [self.answer(line) for line in lines]

    @staticmethod
    def answer(line: str) -> Any:
        number = int(line.split()[-1].strip("."))
        text = {1: "", 2: line, 3: "A"}.get(number, f"This is line number {number}.")
        return SimpleNamespace(text=text, confidence=0.1 if number == 4 else 0.5 + number / 1000, finish="length" if number == 5 else "eos")


LINES = [f"Das ist nun die Zeile mit der Nummer {number}." for number in range(20)]


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch) -> Stub:
    made = Stub()
    monkeypatch.setattr(monolingual.Translator, "load", lambda *_, **__: made)
    return made


def test_poor_translations_are_dropped_with_reasons(stub: Stub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(monolingual, "LEAST_SURE", 0.0)
    counts = SyntheticCounts(("en", "de"), read=len(LINES))
    BackTranslator(tmp_path, settings(), None, None).make_pairs(LINES, counts, None, lambda _: None)
    assert counts.dropped == {"empty": 1, "copied": 1, "length_ratio": 1, "degenerate": 1}
    assert counts == SyntheticCounts.load(tmp_path) or list(counts.languages) == list(SyntheticCounts.load(tmp_path).languages)
    assert counts.read == counts.kept + sum(counts.dropped.values()) and counts.translated == 20
    pairs = pq.read_table(tmp_path / PAIRS).to_pylist()
    assert {"source": "This is line number 7.", "target": LINES[7]} in pairs and len(pairs) == counts.kept
    assert not (tmp_path / PARTS).exists()


def test_the_least_sure_are_dropped(stub: Stub, tmp_path: Path) -> None:
    counts = SyntheticCounts(("en", "de"), read=len(LINES))
    BackTranslator(tmp_path, settings(), None, None).make_pairs(LINES, counts, None, lambda _: None)
    assert counts.dropped["unsure"] == 2  # of twenty
    assert not {LINES[4], LINES[0]} & {*pq.read_table(tmp_path / PAIRS)["target"].to_pylist()}


def test_no_chunk_is_translated_twice_and_time_ends_it(stub: Stub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(monolingual, "CHUNK", 5)
    stub.most = 12
    translator = BackTranslator(tmp_path, settings(), None, None)
    with pytest.raises(KeyboardInterrupt):
        translator.make_pairs(LINES, SyntheticCounts(("en", "de"), read=20), None, lambda _: None)
    assert not (tmp_path / COUNTS).exists() and len(list((tmp_path / PARTS).iterdir())) == 2
    stub.asked, stub.most = 0, 10**9
    counts = SyntheticCounts(("en", "de"), read=20)
    translator.make_pairs(LINES, counts, None, lambda _: None)
    assert stub.asked == 10 and counts.translated == 20
    late = SyntheticCounts(("en", "de"), read=20)
    translator.make_pairs(LINES, late, 0.0, lambda _: None)
    assert (late.translated, late.dropped["no_time"]) == (5, 15)
    assert late.read == late.kept + sum(late.dropped.values())


# Rounds.


class Led:
    """Stands for the runs of all models."""

    def __init__(self) -> None:
        self.asked: list[tuple[TrainRequest, Path]] = []
        self.state = "done"

    def __call__(self, asked: TrainRequest, place: Path, began: float, told: Sequence[Any]) -> TrainResult:
        self.asked.append((asked, place))
        place.mkdir(parents=True, exist_ok=True)
        return TrainResult(self.state, place, 0, None, [], {})  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = make_corpus(tmp_path_factory.mktemp("corpus"))
    write(folder / "news.de", (folder / "numbers.de").read_bytes().decode().split("\n")[:60])
    return folder


def ask(corpus: Path, rounds: int = 1, **more: Any) -> TrainRequest:
    real = data(corpus)
    real = real.changed(filters=OFF, held_out={"valid_pairs": 16, "test_pairs": 8})
    mono = MonoText([str(corpus / "news.de")], [], rounds, more.pop("weight", None))
    return TrainRequest(data=real, mono=mono, **more)


def lead(asked: TrainRequest, folder: Path, led: Led) -> TrainResult:
    folder.mkdir(exist_ok=True)
    assert asked.mono and asked.data
    return Rounds(asked, asked.mono, asked.data, folder, LocalEngine(0), lambda _: None, lambda _: None, led, 0.0).train()


@pytest.fixture
def numbered(stub: Stub, monkeypatch: pytest.MonkeyPatch) -> Stub:
    monkeypatch.setattr(stub, "answer", lambda line: SimpleNamespace(text=f"the {line}", confidence=0.5, finish="eos"), raising=False)
    return stub


def test_the_last_model_learns_from_real_and_tagged_pairs_and_shares_its_sets(corpus: Path, numbered: Stub, tmp_path: Path) -> None:
    led = Led()
    lead(ask(corpus, steps=90), tmp_path / "run", led)
    (other, place), (last, folder) = led.asked
    assert folder == tmp_path / "run" and place == folder / "synthetic" / "1-de-en"
    assert (other.steps, last.steps) == (35, 55)
    assert other.data and last.data and other.mono is None and last.mono is not None
    assert other.data.languages == ("de", "en") and last.data.languages == ("en", "de")
    assert [each.name for each in last.data.corpora] == ["numbers", SYNTHETIC] and last.data.corpora[1].tags == (SYNTHETIC,)
    assert last.changes["batch"] == {"untagged": 0.0} and "batch" not in other.changes
    counts = list_counts(folder)[0]
    assert counts.kept == 60 and counts.read == counts.kept + sum(counts.dropped.values())
    held_out = pq.read_table(last.data.held_out.test[0]).to_pylist(), pq.read_table(last.data.held_out.valid[0]).to_pylist()
    assert all(held_out) and not other.data.held_out.test and other.data.held_out.test_pairs == 0
    turned = pq.read_table(other.data.held_out.valid[0]).to_pylist()
    assert [(row["target"], row["source"]) for row in turned] == [(row["source"], row["target"]) for row in held_out[1]]
    learnt = {(row["target"], row["source"]) for row in pq.read_table(other.data.corpora[0].paths[0]).to_pylist()}
    assert learnt and not learnt & {(row["source"], row["target"]) for rows in held_out for row in rows}


@pytest.mark.parametrize("verdict", ["NOT USABLE: it says nothing", "For gist: it says something"])
def test_pairs_of_a_translator_that_is_not_usable_are_doubted(
    corpus: Path, numbered: Stub, tmp_path: Path, verdict: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(numbered, "settings", SimpleNamespace(search=SearchSettings(), trained_on={"verdict": verdict}), raising=False)
    for _ in range(2):  # the second time its pairs are there already
        told: list[Any] = []
        asked = ask(corpus, steps=90)
        folder = tmp_path / "run"
        folder.mkdir(exist_ok=True)
        assert asked.mono and asked.data
        Rounds(asked, asked.mono, asked.data, folder, LocalEngine(0), told.append, lambda _: None, Led(), 0.0).train()
        doubts = [event.text for event in told if event.text.startswith("doubt 1: ")]
        assert len(doubts) == verdict.startswith("NOT") and all(verdict in each and "leave out --mono" in each for each in doubts)


def test_rounds_alternate_and_real_text_is_a_third_at_least(corpus: Path, numbered: Stub, tmp_path: Path) -> None:
    led = Led()
    lead(ask(corpus, rounds=2, budget_seconds=1900.0), tmp_path / "run", led)
    assert [each.data.languages for each, _ in led.asked if each.data] == [("de", "en"), ("en", "de"), ("de", "en"), ("en", "de")]
    assert [each.budget_seconds for each, _ in led.asked[:3]] == [350.0] * 3 and 0 < (led.asked[3][0].budget_seconds or 0) < 1900
    between = led.asked[1][0].data  # learns from the training part alone, too
    assert between and between.corpora[0].columns == ("target", "source") and not between.held_out.test
    assert between.corpora[0].paths == led.asked[0][0].data.corpora[0].paths  # type: ignore[union-attr]
    third = led.asked[2][0].data  # learns from the English of the real text, translated
    assert third and third.corpora[1].tags == (SYNTHETIC,)
    text = tmp_path / "run" / "synthetic" / "text" / "train.parquet"
    assert SyntheticCounts.load(tmp_path / "run" / "synthetic" / "2-en-de").kept <= pq.read_metadata(text).num_rows
    rounds = Rounds(ask(corpus), ask(corpus).mono, ask(corpus).data, tmp_path / "run", None, None, None, None, 0.0)  # type: ignore[arg-type]
    real = pq.read_metadata(text).num_rows
    (tmp_path / "run" / "synthetic" / "1-de-en" / COUNTS).write_bytes(b'{"languages": ["en", "de"], "kept": %d}' % (8 * real))
    assert [each.weight for each in rounds._data(1).corpora] == [4.0, 1.0]
    asked = ask(corpus, weight=0.5)
    rounds = Rounds(asked, asked.mono, asked.data, tmp_path / "run", None, None, None, None, 0.0)  # type: ignore[arg-type]
    assert [each.weight for each in rounds._data(1).corpora] == [1.0, 0.5]


def test_another_request_is_refused_and_a_stopped_model_ends_it(corpus: Path, numbered: Stub, tmp_path: Path) -> None:
    led = Led()
    led.state = "preempted"
    assert lead(ask(corpus, steps=90), tmp_path / "run", led).state == "preempted"
    assert len(led.asked) == 1 and read_status(tmp_path / "run")["state"] == "preempted" and numbered.asked == 0
    with pytest.raises(ConfigError, match=r"asked for other things(.|\n)*seed was not given, and is 3 now"):
        lead(ask(corpus, steps=90, seed=3), tmp_path / "run", led)


def test_a_dry_run_looks_at_its_own_text_and_not_at_that_of_another(corpus: Path, tmp_path: Path) -> None:
    led = Led()
    lead(ask(corpus, steps=90, dry_run=True), tmp_path / "run", led)
    [text] = (tmp_path / "run").rglob("train.parquet")
    text.unlink()
    lead(ask(corpus, steps=90, dry_run=True), tmp_path / "run", led)
    assert text.is_file()


@pytest.mark.parametrize("dry", [False, True])
def test_lines_that_cannot_be_used_are_refused_before_anything_is_trained(corpus: Path, tmp_path: Path, dry: bool) -> None:
    (tmp_path / "none.de").touch()
    asked, led = replace(ask(corpus, steps=90, dry_run=dry), mono=MonoText([str(tmp_path / "none.de")], [])), Led()
    with pytest.raises(DataError, match="too little text in de: 0 lines read"):
        lead(asked, tmp_path / "run", led)
    assert not led.asked and not list((tmp_path / "run").iterdir())


def test_several_processes_are_refused(corpus: Path) -> None:
    refuse_sharing(TrainRequest(None), 2)
    with pytest.raises(ConfigError, match="leave out --nproc"):
        refuse_sharing(ask(corpus), 2)


# Whole runs, killed.

SMALL: dict[str, Any] = {
    "model": {"d_model": 32, "d_ff": 64, "num_heads": 2, "encoder_layers": 1, "decoder_layers": 1, "max_length": 22},
    "batch": {"budget": 256},
    "validation": {"every": 4, "sentences": 4},
    "probes": {"sentences": 1, "longest": 12},
    "checkpoints": {"every_seconds": 1e-6},  # after every step
    "machine": {"device": "cpu", "workers": 0},
}


def keep_all(self: BackTranslator, lines: Sequence[str], made: Sequence[Any]) -> tuple[list[tuple[str, str]], dict[str, int]]:
    """A model of a few steps makes nothing that would be kept; what it makes depends on every bit of it all the same."""
    return [(f"{each.text} {number}", line) for number, (each, line) in enumerate(zip(made, lines, strict=True))], {}


def live(asked: TrainRequest, run: Path, told: Signal | None) -> None:
    if told is not None:
        leader.write_report = lambda folder: None  # takes longer than such a run
    monolingual.CHUNK = 20
    BackTranslator._judge = keep_all  # type: ignore[method-assign]
    os.setsid()
    sender = Sender(told or Signal())
    if told and told.inside:
        module, _, name = told.inside.partition(":")
        wrap(sys.modules[module], name, sender.call)
    sys.exit(runs.train(asked, run, LocalEngine(0), sender.watch, lambda _: None, ["limelight"]).exit_code)


def begin(asked: TrainRequest, run: Path, told: Signal | None = None) -> int | None:
    process = PROCESSES.Process(target=live, args=(asked, run, told))
    process.start()
    process.join(600)
    assert process.exitcode is not None
    return process.exitcode


MOMENTS: dict[str, dict[str, Any]] = {
    "while the real text is parted": {"inside": "limelight.training.run.rounds:write_pairs", "nth": 2},
    "after the fourth step of the other direction": {"after_step": 4},
    "in the second chunk": {"inside": "limelight.training.recipe.monolingual:BackTranslator._make_part", "nth": 2},
    "while the pairs are written": {"inside": "limelight.training.recipe.monolingual:write_pairs"},
    "while all text is prepared": {"inside": "limelight.training.run.leader:prepare"},
    "after the fifth step of the last model": {"after_step": 5},
}


@pytest.mark.process
@pytest.mark.timeout(3000)
def test_killed_in_every_stage_it_goes_on_to_the_same_bits(corpus: Path, tmp_path: Path) -> None:
    asked = ask(corpus, steps=18, changes=SMALL, threads=1, precision="float32", preset="toy", export=False)
    straight, broken = tmp_path / "straight", tmp_path / "broken"
    assert begin(asked, straight) == DONE
    for moment, when in MOMENTS.items():
        assert begin(asked, broken, Signal(**when, number=signal.SIGKILL)) == -signal.SIGKILL, moment
    assert begin(asked, broken) == DONE
    pairs = [hashlib.sha256((run / "synthetic" / "1-de-en" / PAIRS).read_bytes()).hexdigest() for run in (straight, broken)]
    assert pairs[0] == pairs[1]
    assert story(straight) == story(broken) and remains(straight) == remains(broken)
    learnt = PreparedCorpus.open(straight / PREPARED).manifest.corpora
    assert [each.name for each in learnt[:2]] == ["numbers", SYNTHETIC] and learnt[1].kept["train"] > 20
    assert "60 lines read, 60 translated, 60 kept" in (straight / REPORT_MD).read_text("utf-8")
    card = (straight / "bundle" / CARD).read_text("utf-8")
    assert f"synthetic pairs among them: {learnt[1].kept['train']}" in card and "60 lines read, 60 translated, 60 kept" in card
    assert "asked for without it" in card and "--tag synthetic" not in card
    assert list(read(straight / "bundle").settings.tags.names) == [SYNTHETIC]  # type: ignore[union-attr]
