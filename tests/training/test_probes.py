"""Sentences that are traced while a model learns: which, how many are kept, and that a run is the same run with them."""

import gzip
import json
import sys
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest
import torch
from small_runs import DONE, SHORT, STOPPED, Signal, Small, check_equal, make_corpus, notices

sys.path.insert(0, str(Path(__file__).parents[1] / "corpus"))
sys.path.insert(0, str(Path(__file__).parents[1] / "bundles"))
from make_numbers import draw_pairs
from prepare_command import here

from limelight.bundle import Bundle, read
from limelight.corpus.feeding.shards import PreparedCorpus
from limelight.errors import ConfigError, DataError
from limelight.inspection.wire.trace_json import from_json
from limelight.training.config import ProbeSettings, ValidationSettings
from limelight.training.events import Event, RunNotice, ValidReport, read_events
from limelight.training.run_folder import METRICS, PROBES, list_probed_steps
from limelight.training.validation.probes import Probes, add_probes, least_missed, read_sentences
from limelight.training.validation.validator import Validator
from limelight.translator.translate import Translator

STORED = Path(__file__).parents[1] / "bundles" / "format-1"


@pytest.fixture(scope="module")
def bundle() -> Bundle:
    return read(STORED)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> PreparedCorpus:
    """Number words in the pieces of the stored translator, which knows them."""
    folder = tmp_path_factory.mktemp("probes")
    drawn = draw_pairs(90, Random(5), held_out=False)
    for name, pairs in (("train", drawn[:50]), ("dev", drawn[50:])):
        (folder / f"{name}.tsv").write_bytes("".join(f"{s}\t{t}\n" for s, t in pairs).encode())
    done = here(
        "prepare", folder / "train.tsv", "--source", "en", "--target", "de", "--valid", folder / "dev.tsv", "--workers", "0",
        "filters.wrong_language=off", "held_out.leaks=off", f'given_pieces=["{STORED / "pieces.model"}"]', "-o", folder / "out",
    )  # fmt: skip
    assert done.code == 0, done.err
    return PreparedCorpus.open(folder / "out")


@pytest.fixture(scope="module")
def validator(bundle: Bundle, prepared: PreparedCorpus) -> Validator:
    tokenizers = (bundle.source_tokenizer, bundle.target_tokenizer)
    made = Validator(bundle.load_model(), prepared, tokenizers, ValidationSettings())
    made.take(bundle.weights())
    return made


def probes_in(folder: Path, validator: Validator, **settings: Any) -> Probes:
    made = Probes(folder / PROBES, ProbeSettings(**settings), validator)
    made.begin(None)
    return made


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_sentences_are_of_the_validation_set_and_of_different_lengths(tmp_path, validator):
    probes = probes_in(tmp_path, validator, sentences=5, longest=20)
    pairs = dict(zip(validator.sources, validator.references, strict=True))
    assert len(probes.sentences) == 5 and all(pairs[p.source] == p.reference for p in probes.sentences)
    lengths = [len(ids) for ids in validator.translator(0).source_ids([p.source for p in probes.sentences])]
    assert max(lengths) <= 20 and len(set(lengths)) >= 3
    assert read_sentences(tmp_path / PROBES) == probes.sentences


def test_a_trace_is_that_of_the_translator_at_this_step(tmp_path, validator):
    probes = probes_in(tmp_path, validator, sentences=2)
    probes.trace(700)
    told = json.loads(gzip.decompress((tmp_path / PROBES / "01" / "700.json.gz").read_bytes()))
    trace, expected = from_json(told), validator.translator(700).trace(probes.sentences[1].source)
    assert trace.source == expected.source and trace.model == expected.model and trace.model.step == 700
    assert trace.target.text == expected.target.text and trace.target.finish == "eos" and trace.verified
    for kind, weights in expected.attention.items():
        assert abs(trace.attention[kind] - weights).max() <= 1 / 500
    assert [each.id for each in trace.heads] == [each.id for each in expected.heads] and "beam" not in told


def test_tracing_draws_nothing_and_leaves_the_weights(tmp_path, validator):
    before, state = [p.clone() for p in validator._twin.parameters()], torch.get_rng_state()
    probes_in(tmp_path, validator, sentences=2).trace(5)
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(a, b) for a, b in zip(before, validator._twin.parameters(), strict=True))
    assert all(light.attention.gate is None and not light.attention.looks for light in validator._twin.spotlights())


def test_equal_traces_are_equal_bytes(tmp_path, validator):
    for name in ("a", "b"):
        probes_in(tmp_path / name, validator, sentences=2).trace(5)
    assert content(tmp_path / "a") == content(tmp_path / "b") and len(content(tmp_path / "a")) == 3


def test_of_many_validations_evenly_spread_ones_stay_the_first_and_the_last_among_them(tmp_path, validator):
    probes = probes_in(tmp_path, validator, sentences=1, steps=6)
    for step in range(100, 2100, 100):
        place = probes.place(0, step)
        place.parent.mkdir(exist_ok=True)
        place.write_bytes(b"a trace")
        probes.thin()
        kept = list_probed_steps(probes.folder)
        inner = [after - before for before, after in pairwise(kept[:-1])]
        assert kept[0] == 100 and kept[-1] == step and len(kept) == min(6, step // 100)
        assert not inner or max(inner) <= 2 * min(inner)
    assert least_missed([1, 4, 5, 9]) == 4


def test_no_more_bytes_than_allowed_are_kept(tmp_path, validator):
    probes = probes_in(tmp_path, validator, sentences=1, megabytes=0.001)
    (tmp_path / PROBES / "00").mkdir()
    for step in range(1, 9):
        probes.place(0, step).write_bytes(b"." * 300)
        probes.thin()
        assert probes.bytes() <= 1000 and {1, step} <= set(list_probed_steps(probes.folder))
    for step in (9, 10):  # what is larger alone stays all the same: the first and the last
        probes.place(0, step).write_bytes(b"." * 3000)
        probes.thin()
    assert list_probed_steps(probes.folder) == [1, 10]


@pytest.mark.slow
def test_a_run_that_goes_on_keeps_its_sentences_and_forgets_what_came_after_its_checkpoint(tmp_path, validator):
    first = probes_in(tmp_path, validator, sentences=2)
    for step in (4, 8, 12):
        first.trace(step)
    again = Probes(tmp_path / PROBES, ProbeSettings(sentences=5), validator)
    assert again.begin(8) is None
    assert again.sentences == first.sentences and list_probed_steps(again.folder) == [4, 8]
    fresh = Probes(tmp_path / PROBES, ProbeSettings(sentences=3), validator)
    fresh.begin(None)
    assert list_probed_steps(fresh.folder) == [] and len(fresh.sentences) == 3
    (tmp_path / PROBES / "sentences.json").write_bytes(b"[{")
    assert Probes(tmp_path / PROBES, ProbeSettings(sentences=3), validator).begin(8) is not None


def test_sentences_of_a_file_stand_for_those_of_the_set(tmp_path, validator):
    file = tmp_path / "watch.txt"
    file.write_bytes(f"twenty-one\n\nsix hundred and two\n{'nine ' * 60}\n".encode())
    told: list[Event] = []
    settings = ProbeSettings(file=str(file), longest=24)
    watch = add_probes(told.append, tmp_path, settings, validator)
    assert [probe.source for probe in read_sentences(tmp_path / PROBES) or ()] == ["twenty-one", "six hundred and two"]
    assert isinstance(told[0], RunNotice) and "2 sentences" in told[0].text and "1 more have over 24" in told[0].text
    report = ValidReport(9, 1.0, 1.0, 1.0, 1.0, 1.0, True, ())
    watch(report)
    assert told[1:] == [report] and list_probed_steps(tmp_path / PROBES) == [9]
    for text, problem in ((b"", "has 0 sentences"), (b"one\n" * 9, "has 9 sentences"), (b"\xff", "UTF-8")):
        file.write_bytes(text)
        with pytest.raises(DataError, match=problem):
            add_probes(told.append, tmp_path / "other", settings, validator)


def test_a_probe_that_cannot_be_written_does_not_end_the_run(tmp_path, validator, caplog):
    watch = add_probes(lambda _: None, tmp_path, ProbeSettings(sentences=2), validator)
    (tmp_path / PROBES / "00").write_bytes(b"a file where a folder should be")
    watch(ValidReport(9, 1.0, 1.0, 1.0, 1.0, 1.0, True, ()))
    assert "step 9: probe 0 was not traced: FileExistsError" in caplog.text
    assert (tmp_path / PROBES / "01" / "9.json.gz").is_file()


def test_a_probe_that_fails_for_any_reason_costs_only_its_own_trace(tmp_path, validator, caplog, monkeypatch):
    watch = add_probes(lambda _: None, tmp_path, ProbeSettings(sentences=2), validator)
    real, first = Translator.trace, read_sentences(tmp_path / PROBES)[0].source

    def failing(self, text, *given, **more):
        if text == first:
            raise RuntimeError("out of memory")
        return real(self, text, *given, **more)

    monkeypatch.setattr(Translator, "trace", failing)
    watch(ValidReport(9, 1.0, 1.0, 1.0, 1.0, 1.0, True, ()))
    assert "probe 0 was not traced: RuntimeError: out of memory" in caplog.text
    assert [path.parent.name for path in (tmp_path / PROBES).glob("*/9.json.gz")] == ["01"]


def test_none_are_traced_where_none_are_wanted(tmp_path, validator):
    def watch(event: Event) -> None: ...

    assert add_probes(watch, tmp_path, ProbeSettings(sentences=0), validator) is watch
    assert not (tmp_path / PROBES).exists()


@pytest.mark.long
def test_a_run_with_probes_that_was_stopped_is_the_run_without_them_that_was_not(tmp_path):
    corpus = make_corpus(tmp_path / "corpus")
    without = Small(corpus, tmp_path / "without", {**SHORT, "probes": {"sentences": 0}})
    broken = Small(corpus, tmp_path / "broken", {**SHORT, "probes": {"sentences": 2}})
    assert broken.live(Signal(after_step=6)) == STOPPED
    assert list_probed_steps(broken.run / PROBES) == [4]
    assert broken.live() == without.live() == DONE
    check_equal(broken, without)
    reports = [each for each in read_events(broken.run / METRICS) if isinstance(each, ValidReport)]
    spent = broken.saved.state["pace"]["spent"]["validate"]
    assert spent > sum(each.seconds for each in reports) + 0.005, "tracing the probes is time of validation too"
    assert list_probed_steps(broken.run / PROBES) == [4, 8, 12] and not (without.run / PROBES).exists()
    assert len([each for each in notices(broken.run, "note") if "are traced" in each.text]) == 1


@pytest.mark.parametrize("wrong", [{"sentences": 9}, {"steps": 1}, {"longest": 0}, {"megabytes": 0}])
def test_settings_that_cannot_be_are_refused(wrong):
    with pytest.raises(ConfigError):
        ProbeSettings(**wrong)
