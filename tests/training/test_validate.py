"""Validation by real translation, on the stored translator of number words."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "corpus"))
sys.path.insert(0, str(Path(__file__).parents[1] / "bundles"))
from make_numbers import MEANING
from prepare_command import here

from limelight.bundle import Bundle, read
from limelight.corpus.feeding.shards import PreparedCorpus
from limelight.errors import DataError
from limelight.model.transformer import Transformer
from limelight.training.config import ValidationSettings
from limelight.training.validation.validator import Validator

STORED = Path(__file__).parents[1] / "bundles" / "format-1"
ENGLISH = [word for word in MEANING if word.isalpha()]


def numbers_of(count: int, length: int, seed: int) -> list[tuple[str, str]]:
    chance = np.random.default_rng(seed)
    rows = chance.choice(ENGLISH, (count, length)).tolist()
    return [(" ".join(row), " ".join(MEANING[word] for word in row)) for row in rows]


def prepared_with(folder: Path, valid: list[tuple[str, str]]) -> PreparedCorpus:
    """A prepared corpus in the pieces of the stored translator."""
    folder.mkdir(exist_ok=True)
    for name, pairs in (("train", numbers_of(60, 5, 1)), ("dev", valid)):
        (folder / f"{name}.tsv").write_bytes("".join(f"{s}\t{t}\n" for s, t in pairs).encode())
    done = here(
        "prepare", folder / "train.tsv", "--source", "en", "--target", "de", "--valid", folder / "dev.tsv", "--workers", "0",
        "filters.wrong_language=off", "held_out.leaks=off", f'given_pieces=["{STORED / "pieces.model"}"]', "-o", folder / "out",
    )  # fmt: skip
    assert done.code == 0, done.err
    return PreparedCorpus.open(folder / "out")


@pytest.fixture(scope="module")
def bundle() -> Bundle:
    return read(STORED)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> PreparedCorpus:
    return prepared_with(tmp_path_factory.mktemp("valid"), [pair for n in (2, 4, 6) for pair in numbers_of(10, n, n)])


def validator_of(bundle: Bundle, prepared: PreparedCorpus, model: Transformer | None = None, **more: Any) -> Validator:
    tokenizers = (bundle.source_tokenizer, bundle.target_tokenizer)
    return Validator(model or bundle.load_model(), prepared, tokenizers, ValidationSettings(**more))


def test_a_trained_translator_scores_well_and_an_untrained_one_does_not(bundle: Bundle, prepared: PreparedCorpus) -> None:
    validator = validator_of(bundle, prepared)
    good = validator.validate(bundle.weights(), threads=2)
    bad = validator.validate(dict(Transformer(bundle.settings.model).named_parameters()), threads=1)
    assert good.bleu > 90 and good.chrf > 90 and good.nll < 0.3
    assert bad.bleu < 5 and bad.chrf < 30 and bad.nll > 1.5
    assert good.score("chrf") == good.chrf and good.score("bleu") == good.bleu


@pytest.mark.slow
def test_the_nll_is_that_of_the_model(bundle: Bundle, prepared: PreparedCorpus) -> None:
    found = validator_of(bundle, prepared).validate(bundle.weights(), threads=1)
    model, pairs = bundle.load_model(), prepared.split("valid")
    source, target = pairs.ids(np.arange(pairs.rows, dtype=np.int64))
    total, pieces = 0.0, 0
    for row in range(pairs.rows):
        ids = [[*side.take(np.array([row])).values.tolist(), 3] for side in (source, target)]
        log_p = model(torch.tensor([ids[0]]), torch.tensor([[2, *ids[1][:-1]]])).log_softmax(-1)
        total -= float(log_p[0, range(len(ids[1])), ids[1]].sum().detach())
        pieces += len(ids[1])
    assert found.nll == pytest.approx(total / pieces, rel=1e-4)


def test_the_text_is_normalized_as_the_finished_translator_will(bundle: Bundle, prepared: PreparedCorpus) -> None:
    settings = {**prepared.manifest.settings, "normalize": ["spaces"]}
    plain = PreparedCorpus(prepared.folder, prepared.manifest.changed(settings=settings))
    assert validator_of(bundle, plain)._bundle.normalization == ("spaces",)
    assert len(validator_of(bundle, prepared)._bundle.normalization) > 1


def test_the_model_in_training_is_not_touched(bundle: Bundle, prepared: PreparedCorpus) -> None:
    model = bundle.load_model().bfloat16().train()
    before = {name: weight.clone() for name, weight in model.named_parameters()}
    threads, chance = torch.get_num_threads(), torch.get_rng_state()
    validator_of(bundle, prepared, model).validate(bundle.weights(), threads=1)
    assert model.training and torch.get_num_threads() == threads
    assert torch.equal(torch.get_rng_state(), chance)
    for name, weight in model.named_parameters():
        assert weight.dtype == torch.bfloat16 and weight.requires_grad and torch.equal(weight, before[name])


def test_weights_in_training_leave_no_graph_behind(bundle: Bundle, prepared: PreparedCorpus) -> None:
    """Without a moving average the weights of the optimizer themselves are validated, and they want a gradient."""
    validator = validator_of(bundle, prepared)
    model = bundle.load_model().train()
    for _ in range(2):
        validator.validate(dict(model.named_parameters()), threads=1)
    assert not any(weight.requires_grad for weight in validator._twin.parameters())


def test_a_large_set_is_thinned_all_over(bundle: Bundle, prepared: PreparedCorpus) -> None:
    every = validator_of(bundle, prepared).sources
    some = validator_of(bundle, prepared, sentences=7).sources
    assert len(every) == 30 and len(some) == 7
    places = [every.index(source) for source in some]
    assert places == sorted(places) and places[0] == 0 and places[-1] == 29


def test_samples_are_short_and_long(bundle: Bundle, prepared: PreparedCorpus) -> None:
    found = validator_of(bundle, prepared, samples=3).validate(bundle.weights(), threads=1)
    assert len(found.samples) == 3
    lengths = [len(sample.source) for sample in found.samples]
    assert lengths == sorted(lengths) and lengths[0] < lengths[-1]
    for sample in found.samples:
        assert sample.reference == " ".join(MEANING[word] for word in sample.source.split())
        assert 0 < sample.confidence <= 1
    assert validator_of(bundle, prepared, samples=0).validate(bundle.weights(), threads=1).samples == ()


def test_pairs_longer_than_the_models_positions_do_not_end_a_run(bundle: Bundle, tmp_path: Path) -> None:
    longest = bundle.settings.model.max_length
    pairs = [*numbers_of(10, 4, 3), *numbers_of(1, longest + 5, 4)]
    prepared = prepared_with(tmp_path, pairs)
    validator = validator_of(bundle, prepared)
    assert len(validator.sources) == 11
    assert validator.validate(bundle.weights(), threads=1).nll < 0.5


def test_a_set_that_is_too_long_as_a_whole_is_refused_before_training(bundle: Bundle, tmp_path: Path) -> None:
    longest = bundle.settings.model.max_length
    with pytest.raises(DataError, match=rf"all 2 validation pairs.*model.max_length={longest} pieces; raise it"):
        validator_of(bundle, prepared_with(tmp_path, numbers_of(2, longest + 5, 4)))


def test_a_corpus_without_validation_pairs_is_refused(bundle: Bundle, prepared: PreparedCorpus) -> None:
    none = PreparedCorpus(prepared.folder, prepared.manifest.changed(splits={**prepared.manifest.splits, "valid": []}))
    with pytest.raises(DataError, match=r"could be set aside for validation.*--valid, or more text"):
        validator_of(bundle, none)
