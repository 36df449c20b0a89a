"""Head importance: muting a head does to a batch what it does to one sentence, and a head without effect has exactly none."""

import pytest
import torch

from limelight.decoding.config import SearchSettings
from limelight.decoding.search import search
from limelight.decoding.steps import Request, Specials
from limelight.engines.torch import OnHost, TorchEngine
from limelight.errors import ConfigError
from limelight.inspection.analysis import importance as room
from limelight.inspection.analysis.importance import importance
from limelight.inspection.interventions import Changes
from limelight.inspection.tracing.relit_model import IntervenedModel
from limelight.model.config import ModelConfig
from limelight.model.multi_head import MultiHeadAttention
from limelight.model.transformer import Transformer

SPECIALS = Specials()
SHAPE = {"d_model": 24, "d_ff": 20, "num_heads": 4, "encoder_layers": 1, "decoder_layers": 2}
PAIRS = [([5, 9, 17], [6, 8]), ([12], [30, 31, 7, 9, 22]), ([6, 6, 21, 8, 30], [11]), ([7, 28], [])]


@pytest.fixture
def model() -> Transformer:
    torch.manual_seed(5)
    made = Transformer(ModelConfig(vocab_size=37, norm_order="pre", **SHAPE)).eval()
    with torch.no_grad():
        made.target_embedding.weight.mul_(3)
        for light in made.spotlights():
            light.attention.out.weight.mul_(4)
    return made


def scored(model: Transformer, gates: dict[str, float], given: int = 0) -> list[float]:
    """The log-probability of each target, one by one, by an engine that knows nothing of importance."""
    found = []
    for source, target in PAIRS:
        lit = IntervenedModel(model, Changes(gates=gates), SPECIALS.add_end(source))
        found.append(sum(TorchEngine(lit.model, SPECIALS).score([source], [target])[0][given:]))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("given", [0, 1])
@pytest.mark.parametrize("cells", [4096, 40, 8])
def test_each_head_changes_what_it_changes_when_it_is_muted_alone(model, monkeypatch, cells, given):
    """With all copies in one pass, with some, and sentence by sentence."""
    monkeypatch.setattr(room, "CELLS", cells)
    found = importance(model, PAIRS, SPECIALS, given=given)
    assert [each.id for each in found][:5] == ["enc.0.0", "enc.0.1", "enc.0.2", "enc.0.3", "dec.0.0"]
    assert len({each.id for each in found}) == len(found) == 4 * (1 + 2 + 2)
    plain = sum(scored(model, {}, given))
    pieces = sum(len(target) + 1 - given for _, target in PAIRS)
    for each in found:
        delta = sum(scored(model, {each.id: 0.0}, given)) - plain
        assert each.delta_logp == pytest.approx(delta / len(PAIRS), abs=2e-5)
        assert each.per_piece == pytest.approx(delta / pieces, abs=2e-5)
        assert abs(delta) > 1e-3, "every head of this model does something"


@pytest.mark.parametrize("cells", [4096, 40, 8])
def test_a_head_that_nothing_is_made_of_has_exactly_no_importance(model, monkeypatch, cells):
    monkeypatch.setattr(room, "CELLS", cells)
    idle = {("encoder", 0): 2, ("decoder", 1): 0, ("cross", 0): 3}
    with torch.no_grad():
        for light in model.spotlights():
            head = idle.get((light.kind, light.layer))
            if head is not None:
                light.attention.out.weight[:, head * 6 : head * 6 + 6] = 0.0
    found = {each.id: each.delta_logp for each in importance(model, PAIRS, SPECIALS)}
    assert [head for head, delta in found.items() if delta == 0.0] == ["enc.0.2", "dec.1.0", "cross.0.3"]


def test_the_head_that_carries_everything_is_the_most_important_of_its_kind(model):
    """All other heads of the cross-attention give nothing; the translations are the model's own, so any change makes them less likely."""
    with torch.no_grad():
        for light in model.spotlights():
            if light.kind == "cross":
                kept = light.attention.out.weight[:, 6:12].clone()
                light.attention.out.weight.zero_()
                if light.layer == 1:
                    light.attention.out.weight[:, 6:12] = 6 * kept
    sources = [source for source, _ in PAIRS]
    requests, settings = [Request(source) for source in sources], SearchSettings(beam=2, max_length=8)
    outcomes = search(OnHost(model), requests, settings, SPECIALS)
    pairs = [(source, found.hypotheses[0].ids) for source, found in zip(sources, outcomes, strict=True)]
    cross = {each.id: each.delta_logp for each in importance(model, pairs, SPECIALS) if each.id.startswith("cross")}
    assert min(cross, key=lambda head: cross[head]) == "cross.1.1" and cross["cross.1.1"] < -0.1
    assert all(delta == 0.0 for head, delta in cross.items() if head != "cross.1.1")


def test_progress_is_told_before_each_pass_and_may_end_the_work(model, monkeypatch):
    monkeypatch.setattr(room, "CELLS", 8)
    told = []
    importance(model, PAIRS[:2], SPECIALS, lambda done, total: told.append((done, total)))
    assert told == [(done, 2 * 21) for done in range(2 * 21 + 1)]

    class CancelledError(Exception): ...

    def cancel(done: int, total: int) -> None:
        if done == 9:
            raise CancelledError

    with pytest.raises(CancelledError):
        importance(model, PAIRS[:2], SPECIALS, cancel)


def test_the_model_is_neither_touched_nor_used(model, monkeypatch):
    """Another thread may be translating with it: a gate of ours, also for a moment, would be in its way."""
    own, light = {id(each.attention) for each in model.spotlights()}, MultiHeadAttention.light

    def watched(self, *args):
        assert id(self) not in own
        return light(self, *args)

    monkeypatch.setattr(MultiHeadAttention, "light", watched)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    state, random = model.training, torch.get_rng_state()
    importance(model, PAIRS, SPECIALS)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert model.training == state and torch.equal(torch.get_rng_state(), random)


def test_without_translations_nothing_can_be_judged(model):
    with pytest.raises(ConfigError, match="give some sentences"):
        importance(model, [], SPECIALS)
