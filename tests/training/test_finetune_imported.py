"""A model that others published is fine-tuned here, and goes back to where it came from: transformers reads it and translates the same."""

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

pytest.importorskip("transformers", reason="compares with transformers; pip install limelight[compare]")
sys.path.insert(0, str(Path(__file__).parents[1] / "corpus"))
sys.path.insert(0, str(Path(__file__).parents[1] / "interop"))
import published_models as published
from prepare_command import here
from published_models import OnlyFirst
from small_runs import DONE, STOPPED, Signal, Small, check_equal
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer, LogitsProcessorList

from limelight.bundle import BundleSettings, read, write
from limelight.corpus import prepare as prepare_file
from limelight.corpus.config import CorpusSettings, PrepareSettings, SpecialIds
from limelight.corpus.exchange.engine_local import LocalEngine
from limelight.corpus.feeding.batches import Batcher, BatchSettings, BatchShare
from limelight.corpus.feeding.loader import Loader
from limelight.corpus.feeding.shards import PreparedCorpus
from limelight.corpus.prepare import prepare
from limelight.decoding.config import SearchSettings
from limelight.errors import ConfigError
from limelight.interop.huggingface.load import import_folder, license_of
from limelight.model.config import ModelConfig
from limelight.model.transformer import Batch
from limelight.training.config import FineTuning, Inherited, Recipe, ValidationSettings
from limelight.training.events import StepReport, read_events
from limelight.training.recipe.replay import OldText, inherit_from, mix_old_text, special_ids_of
from limelight.training.recipe.resolve import _check_marks
from limelight.training.run_folder import METRICS, PREPARED, RECIPE, RunFacts
from limelight.training.step.gradients import batch_of
from limelight.training.step.sharding import r_drop_loss
from limelight.training.validation.validator import Validator
from limelight.translator import Translator

pytestmark = [pytest.mark.process, pytest.mark.filterwarnings("ignore:Recommended. pip install sacremoses")]
STORED = Path(__file__).parents[1] / "bundles" / "format-1"
KINDS: dict[str, dict[str, Any]] = {
    "marian": {},
    "marian-separate": {"separate": True},
    "marian-tags": {"tags": (">>deu<<", ">>fra<<")},
    "m2m100": {},
    "nllb": {},
}
LANGUAGES = {
    "m2m100": {"src_lang": "en", "tgt_lang": "de"},
    "nllb": {"src_lang": "eng_Latn", "tgt_lang": "deu_Latn"},
}
FAST = ("--steps", "16", "--threads", "1", "--precision", "float32", "--workers", "0")
# After a few steps most translations do not end by themselves: both sides stop at the same length.
LIMITED = SearchSettings(beam=4, length_norm="power", length_penalty=0.0, max_ratio=100, max_extra=200, max_length=20)
CARD = b'---\nlanguage:\n- "en"\nlicense: "cc-by-4.0"\n---\n\n# Of others\n'


@pytest.fixture(autouse=True)
def threads() -> Iterator[None]:
    """A run sets the threads of its process, which here is that of all tests."""
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def made(kind: str, folder: Path) -> Any:
    return getattr(published, kind.partition("-")[0])(folder, **KINDS[kind])


def pairs(count: int, seed: int = 9) -> list[tuple[str, str]]:
    """Word by word, so that there is something to learn."""
    english, german = (published.WORDS[language].split() for language in ("en", "de"))
    words = {word: german[place % len(german)] for place, word in enumerate(english)}
    sources = published.sentences("en", count, seed)
    return [(text, " ".join(words[word] for word in text.rstrip(".").split()) + ".") for text in sources]


def memory(path: Path, count: int = 120) -> Path:
    """A translation memory."""
    units = "".join(
        f'<tu><tuv xml:lang="en"><seg>{source}</seg></tuv><tuv xml:lang="de"><seg>{target}</seg></tuv></tu>'
        for source, target in pairs(count)
    )
    head = '<?xml version="1.0" encoding="UTF-8"?><tmx version="1.4"><header srclang="en"/><body>'
    path.write_bytes(f"{head}{units}</body></tmx>".encode())
    return path


def changed(bundle: Path, output: Path, **settings: Any) -> Path:
    """The same model with other settings."""
    old = read(bundle)
    sides = (old.source_tokenizer, old.target_tokenizer)
    pieces = (sides[0].model, sides[1].model)
    changes = old.settings.changed(**settings)
    write(output, changes, old.weights(), pieces, license_of(bundle), force=True, vocabulary=sides[0].numbers)
    return output


def settings_for(path: Path) -> PrepareSettings:
    return PrepareSettings(
        languages=("en", "de"),
        corpora=[CorpusSettings(name="new", paths=[str(path)])],
        filters={"wrong_language": "off", "repetition": "off"},
    )


@pytest.fixture
def prepared_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """New text, prepared for a bundle as `train --from` does it."""
    monkeypatch.setattr(prepare_file, "page", lambda manifest: "")  # its pictures take longer than the rest

    def run(bundle: Path) -> PreparedCorpus:
        old, place = OldText(bundle, None), tmp_path / "run" / PREPARED
        into_place = lambda wanted: prepare(wanted, place, LocalEngine(0), lambda _: None, force=True)[0]  # noqa: E731
        into_place(mix_old_text(settings_for(memory(tmp_path / "new.tmx")), old, tmp_path / "run", 1, into_place))
        return PreparedCorpus.open(place)

    return run


# --- the round trip


@pytest.fixture(scope="module")
def tuned(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    """Published, imported and fine-tuned by the commands that the documentation names."""
    place = tmp_path_factory.mktemp(request.param)
    made(request.param, place / "published")
    (place / "published" / "README.md").write_bytes(CARD)
    languages = ("--source", "en", "--target", "de")
    done = here("import", place / "published", "-o", place / "imported", *languages)
    assert done.code == 0, done.err
    changed(place / "imported", place / "imported", alignment=((1, 2), (0, 3)))
    done = here(
        "train", memory(place / "new.tmx"), "--from", place / "imported", "-o", place / "tuned", *FAST,
        "data.filters.wrong_language=off", "data.filters.repetition=off", "optimizer.learning_rate=0.001",
    )  # fmt: skip
    assert done.code == 0, done.err
    return place


both = pytest.mark.parametrize("tuned", ["marian", "m2m100"], indirect=True)


@pytest.mark.long
@both
def test_a_fine_tuned_model_goes_back_to_transformers_and_translates_the_same(tuned: Path) -> None:
    bundle = read(tuned / "tuned")
    done = here("export", tuned / "tuned", "--to", "huggingface", "-o", tuned / "back")
    assert done.code == 0, done.err
    texts = published.sentences("en", 12, seed=4)
    with Translator.load(tuned / "tuned", threads=1) as translator:
        ours = [[piece.text for piece in one.pieces] for one in translator.translate(texts, LIMITED, guards=False)]
    tokenizer = AutoTokenizer.from_pretrained(tuned / "back")
    model = AutoModelForSeq2SeqLM.from_pretrained(tuned / "back")
    once = LogitsProcessorList([OnlyFirst(bundle.settings.target_begin)] if bundle.settings.target_begin else [])
    limited = {"max_length": LIMITED.max_length + 1, "num_beams": LIMITED.beam, "length_penalty": 0.0}
    batch = tokenizer(texts, return_tensors="pt", padding=True)
    rows = model.generate(**batch, **limited, logits_processor=once).tolist()
    begin = 1 + len(bundle.settings.target_begin)
    ends = (tokenizer.pad_token_id, tokenizer.eos_token_id)
    theirs = [tokenizer.convert_ids_to_tokens([i for i in row[begin:] if i not in ends]) for row in rows]
    assert theirs == ours
    assert len({tuple(row) for row in ours}) > 3


@both
def test_text_is_changed_but_for_what_published_pieces_cannot_show(tuned: Path) -> None:
    shares = Recipe.load(tuned / "tuned" / RECIPE).batch.augment
    assert shares is not None and shares.upper > 0
    assert (shares.protect, shares.copied, shares.terms) == (0, 0, 0)
    told = next(each for each in RunFacts.load(tuned / "tuned").chosen if each.name == "augment")
    assert "without protect and copied, since the pieces have no placeholders" in told.why


@both
def test_fine_tuning_learns_from_the_weights_that_were_published(tuned: Path) -> None:
    steps = [event for event in read_events(tuned / "tuned" / METRICS) if isinstance(event, StepReport)]
    assert steps[-1].nll < 0.93 * steps[0].nll
    old, new = read(tuned / "imported").weights(), read(tuned / "tuned").weights()
    apart = {name: float((new[name] - old[name]).abs().max()) for name in old}
    assert all(0 < distance < 0.1 for distance in apart.values()), apart


@both
def test_the_new_bundle_keeps_what_the_old_one_came_with(tuned: Path) -> None:
    old, new = read(tuned / "imported"), read(tuned / "tuned")
    for name in ("languages", "normalization", "search", "alignment", "source_begin", "target_begin", "source_ends"):
        assert getattr(new.settings, name) == getattr(old.settings, name), name
    assert new.settings.model == old.settings.model.changed(dropout=new.settings.model.dropout)
    assert bool(new.settings.target_begin) == (old.settings.model.start_token == old.settings.model.end_token)
    for name in ("source.model", "target.model", "pieces.model", "vocabulary.json"):
        assert (new.folder / name).exists() == (old.folder / name).exists()
        if (old.folder / name).exists():
            assert (new.folder / name).read_bytes() == (old.folder / name).read_bytes()
    assert b'license: "cc-by-4.0"' in (new.folder / "README.md").read_bytes()


@both
def test_it_says_that_there_is_no_old_text_and_goes_on_without(tuned: Path) -> None:
    (said,) = [chosen for chosen in RunFacts.load(tuned / "tuned").chosen if chosen.name == "replay"]
    assert said.value == "none" and "may be forgotten" in said.why
    recipe = Recipe.load(tuned / "tuned" / "recipe.toml")
    assert recipe.fine_tuning is not None and recipe.fine_tuning.replay == 0
    assert recipe.data.marks == special_ids_of(read(tuned / "imported").settings)


@pytest.mark.parametrize("tuned", ["marian"], indirect=True)
def test_what_was_fine_tuned_can_be_fine_tuned_again_with_its_text(tuned: Path, tmp_path: Path) -> None:
    asked: list[PrepareSettings] = []

    def into_place(settings: PrepareSettings) -> Any:
        asked.append(settings)
        return prepare(settings, tmp_path / PREPARED, LocalEngine(0), lambda _: None, force=True)[0]

    settings = mix_old_text(settings_for(memory(tmp_path / "newer.tmx", 60)), OldText(tuned / "tuned", 0.5), tmp_path, 1, into_place)
    assert [corpus.name for corpus in settings.corpora] == ["new", "replay"]
    assert settings.marks == special_ids_of(read(tuned / "imported").settings)
    assert [Path(path).name for path in settings.given_vocabulary] == ["vocabulary.json"]


# --- batches


def shares_of(prepared: PreparedCorpus, **settings: Any) -> list[BatchShare]:
    batcher = Batcher(prepared.split("train"), BatchSettings(budget=300, **settings))
    return list(batcher.shares(batcher.window(0, 0), 0, 1))


def rows(grid: Any, pad: int) -> list[list[int]]:
    return [[int(i) for i in row if i != pad] for row in grid]


@pytest.mark.parametrize("kind", KINDS)
def test_batches_hold_the_ids_that_transformers_makes(kind: str, tmp_path: Path, prepared_for: Any) -> None:
    made(kind, tmp_path / "m")
    import_folder(tmp_path / "m", tmp_path / "b", ("en", "de"))
    prepared = prepared_for(tmp_path / "b")
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "m", **LANGUAGES.get(kind, {}))
    tag = ">>deu<< " if kind == "marian-tags" else ""
    for share in shares_of(prepared)[:4]:
        sources, targets = (side.to_pylist() for side in prepared.split("train").texts(share.samples))
        assert rows(share.source, share.marks.pad) == tokenizer([tag + text for text in sources]).input_ids
        assert rows(share.target, share.marks.pad) == tokenizer(text_target=targets).input_ids
        assert share.targets == sum(map(len, tokenizer(text_target=targets).input_ids))
        assert share.cells <= 300
        held = share.sources + share.targets
        assert share.padding() == pytest.approx(1 - held / share.cells)


@pytest.mark.parametrize("kind", KINDS)
def test_the_loss_of_a_packed_batch_is_that_of_transformers(kind: str, tmp_path: Path, prepared_for: Any) -> None:
    """Marian's decoder reads the padding first: the first place of its input is no padding."""
    theirs = made(kind, tmp_path / "m")
    import_folder(tmp_path / "m", tmp_path / "b", ("en", "de"))
    model, prepared = read(tmp_path / "b").load_model(), prepared_for(tmp_path / "b")
    pad = model.config.pad_token
    padded_somewhere = 0
    for share in shares_of(prepared)[:6]:
        source, target_in, target_out = (
            torch.from_numpy(np.ascontiguousarray(side)) for side in (share.source, share.target_in, share.target_out)
        )
        labels = target_out.masked_fill(target_out == pad, -100)
        padded_somewhere += int((labels == -100).any())
        with torch.no_grad():
            packed = model.loss(batch_of(share, torch.device("cpu"), pad))
            padded = model.loss(Batch.padded(source, target_in, target_out))
            drop, nll = r_drop_loss(model, batch_of(share, torch.device("cpu"), pad), 0.0, 1.0)
            expected = theirs(input_ids=source, attention_mask=(source != pad).long(), labels=labels).loss
        assert int(packed.pieces) == int(padded.pieces) == share.targets
        for found in (packed.nll, padded.nll, drop, nll):
            assert float(found) / share.targets == pytest.approx(float(expected), abs=1e-5)
    assert padded_somewhere > 2


def test_a_model_without_an_end_of_the_source_gets_none(tmp_path: Path, prepared_for: Any) -> None:
    made("marian", tmp_path / "m")
    import_folder(tmp_path / "m", tmp_path / "b", ("en", "de"))
    ended: dict[int, list[int]] = {}
    for share in shares_of(prepared_for(tmp_path / "b")):
        ended |= zip(share.samples.tolist(), rows(share.source, share.marks.pad), strict=True)
    for share in shares_of(prepared_for(changed(tmp_path / "b", tmp_path / "c", source_ends=False))):
        for sample, row in zip(share.samples.tolist(), rows(share.source, share.marks.pad), strict=True):
            assert [*row, 0] == ended[sample]
        assert all(row[-1] == 0 for row in rows(share.target, share.marks.pad))


def test_a_loader_goes_on_from_its_place_and_refuses_other_marks(tmp_path: Path, prepared_for: Any) -> None:
    published.m2m100(tmp_path / "m")
    places = {}
    for target in ("de", "fr"):
        import_folder(tmp_path / "m", tmp_path / target, ("en", target), force=True)
        places[target] = tmp_path / target
    french = read(places["fr"]).settings.aim("fr")  # as if it had this direction alone, for text that is called German
    alone = {"source_begin": french.source_begin, "target_begin": french.target_begin, "languages": ("en", "de")}
    changed(places["fr"], places["fr"], tags=None, **alone)
    prepared, settings = prepared_for(places["de"]), BatchSettings(budget=300)
    with Loader(prepared, settings) as loader:
        straight = [next(loader) for _ in range(5)]
    with Loader(prepared, settings, state=json.loads(json.dumps(straight[1].state))) as loader:
        for expected in straight[2:]:
            found = next(loader)
            for name in ("source", "target_in", "target_out"):
                assert np.array_equal(getattr(found, name), getattr(expected, name))
    other = prepared_for(places["fr"])
    assert other.manifest.text_address == prepared.manifest.text_address
    with pytest.raises(ConfigError, match="prepared was"):
        Loader(other, settings, state=straight[1].state)


@pytest.mark.long
def test_a_stopped_run_goes_on_exactly_where_it_was(tmp_path: Path, prepared_for: Any) -> None:
    published.m2m100(tmp_path / "m", dropout=0.1)
    import_folder(tmp_path / "m", tmp_path / "b", ("en", "de"))
    prepared = prepared_for(tmp_path / "b")
    changes = {
        "data": PrepareSettings(**prepared.manifest.settings),
        "model": read(tmp_path / "b").settings.model.model_dump(),
        "schedule": {"steps": 8, "warmup": 2},
        "validation": {"every": 4},
        "fine_tuning": {"bundle": str(tmp_path / "b"), "replay": 0.0},
    }
    straight, stopped = (Small(tmp_path / "run", tmp_path / name, changes) for name in ("straight", "stopped"))
    assert straight.live() == DONE
    assert stopped.live(Signal(after_step=3)) == STOPPED
    assert stopped.live() == DONE
    check_equal(stopped, straight)
    assert read(straight.run).settings.target_begin == read(tmp_path / "b").settings.target_begin != ()


# --- validation, and what is refused


@pytest.mark.parametrize("ends", [True, False])
def test_validation_translates_as_the_bundle_will(ends: bool, tmp_path: Path, prepared_for: Any) -> None:
    published.m2m100(tmp_path / "m")
    import_folder(tmp_path / "m", tmp_path / "b", ("en", "de"))
    place = tmp_path / "b" if ends else changed(tmp_path / "b", tmp_path / "c", source_ends=False)
    bundle, prepared = read(place), prepared_for(place)
    asked = ValidationSettings(sentences=8, samples=8)
    validated = Validator(bundle.load_model(), prepared, prepared.tokenizers(), asked).validate(bundle.weights(), 1)
    with Translator.load(place, threads=1) as translator:
        made = translator.translate([one.source for one in validated.samples], SearchSettings(beam=1), guards=False)
    assert [one.translation for one in validated.samples] == [one.text for one in made]
    assert len({one.translation for one in validated.samples}) > 2


def test_a_model_that_means_other_ids_than_the_text_is_refused(tmp_path: Path, prepared_for: Any) -> None:
    made("marian", tmp_path / "m")
    import_folder(tmp_path / "m", tmp_path / "b", ("en", "de"))
    prepared, model = prepared_for(tmp_path / "b"), read(tmp_path / "b").settings.model
    recipe = Recipe(data=PrepareSettings(**prepared.manifest.settings), model=model)
    _check_marks(recipe, prepared)
    with pytest.raises(ConfigError, match=rf"model.start_token={model.pad_token}"):
        _check_marks(recipe.changed(model=model.changed(start_token=model.end_token)), prepared)


def test_a_translator_of_ours_has_the_usual_marks_and_nothing_to_inherit(tmp_path: Path) -> None:
    """So that its runs, their folders and their addresses are what they were."""
    stored = read(STORED)
    assert special_ids_of(stored.settings) is None
    made_here = replace(stored, settings=BundleSettings(languages=("en", "de"), model=stored.settings.model), folder=tmp_path)
    assert inherit_from(made_here) is None
    assert FineTuning(bundle="x", inherits=None).model_dump() == {"bundle": "x", "replay": 0.5}
    assert inherit_from(stored) == Inherited(search=stored.settings.search, alignment=((1, 1),), license="apache-2.0")
    other = BundleSettings(languages=("en", "de"), model=ModelConfig(vocab_size=99, start_token=3))
    assert special_ids_of(other) == SpecialIds(start=3)
