"""A lit twin: what is turned has its effect and no other, and the model that it was made from never knows."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from lit_models import INPUTS, KINDS, SOURCE, model_of

from limelight.decoding.config import SearchSettings
from limelight.decoding.search import search
from limelight.decoding.steps import Request
from limelight.engines.torch import OnHost
from limelight.errors import ConfigError, LengthError
from limelight.inspection.head_names import heads_of
from limelight.inspection.interventions import Changes, Pin
from limelight.inspection.tracing.relit_model import IntervenedModel
from limelight.inspection.tracing.stages import run_forced
from limelight.model.transformer import Transformer

SETTINGS = SearchSettings(beam=3, max_length=8, nbest=3)
EVERYTHING = [
    Changes(),
    Changes(gates={"*": 0.3, "cross.1.0": 1}),
    Changes(gates={"enc.*.*": 0.4, "dec.1.*": 0, "cross.*.2": 0.5}, gate_mode="mean"),
    Changes(mask_source=(0, 3)),
    Changes(pins=(Pin(step=0, source=4), Pin(step=2, source=1, layers=(1,), strength=0.6))),
    Changes(positions="zero"),
    Changes(positions="shuffle:5"),
    Changes(positions="shift:3"),
    Changes(attention_temperature=0.5),
]


def logits(model: Transformer, changes: Changes, source: list[int] = SOURCE) -> torch.Tensor:
    return run_forced(IntervenedModel(model, changes, source), source, INPUTS, ())[0]


def translated(model: IntervenedModel | Transformer) -> list[tuple[list[int], list[float]]]:
    (outcome,) = search(OnHost(model), [Request(SOURCE[:-1])], SETTINGS)
    return [(h.ids, h.log_probs) for h in outcome.hypotheses]


def test_without_changes_and_with_all_gates_at_one_no_bit_differs() -> None:
    model = model_of()
    own = model(torch.tensor([SOURCE]), torch.tensor([INPUTS]))[0]
    assert torch.allclose(own, logits(model, Changes()), atol=1e-5)  # fused and in stages
    ones = Changes(gates={str(head): 1.0 for head in heads_of(model.config)})
    for mode in ("zero", "mean"):
        lit = ones.changed(gate_mode=mode)
        assert torch.equal(logits(model, lit), logits(model, Changes()))
        assert translated(IntervenedModel(model, lit, SOURCE)) == translated(model)
    assert not torch.equal(logits(model, Changes(gates={"enc.0.0": 0.99})), logits(model, Changes()))


def test_a_gate_of_one_multiplies_to_the_same_bits() -> None:
    """The dimmer itself, which `Lit` leaves out where nothing is dimmed."""
    lit = IntervenedModel(model_of(), Changes(), SOURCE)
    before, _ = run_forced(lit, SOURCE, INPUTS, ())
    for light in lit.model.spotlights():
        light.attention.gate = torch.ones(4)
    after, _ = run_forced(lit, SOURCE, INPUTS, ())
    assert torch.equal(before, after)


def test_solo_is_all_others_muted() -> None:
    model = model_of()
    others = [str(head) for head in heads_of(model.config) if str(head) != "cross.1.2"]
    muted = Changes(gates=dict.fromkeys(others, 0.0))
    assert len(others) == 7 * 4 - 1
    solo = Changes(gates={"*": 0.0, "cross.1.2": 1.0})
    assert torch.equal(logits(model, solo), logits(model, muted))
    assert not torch.equal(logits(model, solo), logits(model, Changes(gates={"*": 0.0})))


def test_with_every_cross_head_muted_the_source_makes_no_difference() -> None:
    model, other = model_of(), [8, 8, 12, 6, 14, 10, 3]
    dark = Changes(gates={"cross.*.*": 0.0})
    assert torch.equal(logits(model, dark), logits(model, dark, other))
    assert not torch.equal(logits(model, Changes()), logits(model, Changes(), other))
    almost = Changes(gates={"cross.*.*": 0.0, "cross.0.3": 1.0})
    assert not torch.equal(logits(model, almost), logits(model, almost, other))


@pytest.mark.slow
@pytest.mark.parametrize("changes", EVERYTHING, ids=lambda changes: str(EVERYTHING.index(changes)))
@pytest.mark.parametrize("kind", KINDS[:3], ids=lambda kind: "-".join(map(str, kind.values())))
def test_a_search_step_by_step_and_one_pass_say_the_same(kind: dict[str, object], changes: Changes) -> None:
    model = model_of(**kind)
    lit = IntervenedModel(model, changes, SOURCE)
    for ids, log_probs in translated(lit):
        whole, _ = run_forced(lit, SOURCE, [2, *ids], ())
        own = torch.log_softmax(whole, dim=-1)[torch.arange(len(log_probs)), torch.tensor([*ids, 3])[: len(log_probs)]]
        np.testing.assert_allclose(own.numpy(), log_probs, atol=2e-5)


@pytest.mark.parametrize("changes", EVERYTHING[1:], ids=lambda changes: str(EVERYTHING.index(changes)))
def test_every_change_changes_something(changes: Changes) -> None:
    model = model_of()
    assert changes.any() and not Changes().any()
    assert (logits(model, changes) - logits(model, Changes())).abs().max() > 1e-3


@pytest.mark.parametrize("number", [1, 2, 3, 4, 6])
def test_the_model_and_a_search_on_it_at_the_same_time_are_untouched(number: int) -> None:
    model, changes = model_of(), EVERYTHING[number]
    before, kept = translated(model), {name: weight.clone() for name, weight in model.state_dict().items()}
    with ThreadPoolExecutor(2) as pool:
        lit_ones = [pool.submit(lambda: translated(IntervenedModel(model, changes, SOURCE))) for _ in range(2)]
        meanwhile = [pool.submit(translated, model) for _ in range(2)]
        assert all(each.result() == before for each in meanwhile)
        assert len({str(each.result()) for each in lit_ones}) == 1
    assert lit_ones[0].result() != before
    assert translated(model) == before and model.hidden == ()
    assert all(torch.equal(weight, kept[name]) for name, weight in model.state_dict().items())
    assert not any(light.attention.looks or light.attention.gate is not None for light in model.spotlights())
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())


def test_the_twin_has_the_same_weights_and_not_copies_of_them() -> None:
    model = model_of(positions="learned")
    lit = IntervenedModel(model, Changes(positions="shuffle:1"), SOURCE)
    own = {weight.data_ptr() for weight in model.parameters()}
    assert {weight.data_ptr() for weight in lit.model.parameters()} == own


def test_a_hidden_piece_is_as_if_it_were_padding() -> None:
    """Nobody looks at it, neither in the encoder nor from the target: what stands there makes no difference."""
    model, changes = model_of(), Changes(mask_source=(3,))
    other = [*SOURCE[:3], 15, *SOURCE[4:]]
    assert torch.equal(logits(model, changes), logits(model, changes, other))
    assert not torch.equal(logits(model, Changes()), logits(model, Changes(), other))


def test_a_pin_moves_the_look_of_its_step_and_its_layers_only() -> None:
    model = model_of()
    pin = Changes(pins=(Pin(step=2, source=4, layers=(1,), strength=0.75),))
    names = ["dec.0.cross.attn", "dec.1.cross.attn"]
    before, after = (run_forced(IntervenedModel(model, c, SOURCE), SOURCE, INPUTS, names)[1] for c in (Changes(), pin))
    assert np.array_equal(before[names[0]], after[names[0]])
    rows = [0, 1, 3, 4]
    assert np.array_equal(before[names[1]][:, rows][:, :3], after[names[1]][:, rows][:, :3])
    wanted = 0.25 * before[names[1]][:, 2]
    wanted[:, 4] += 0.75
    np.testing.assert_allclose(after[names[1]][:, 2], wanted, atol=1e-6)


def test_a_head_dimmed_to_its_mean_gives_the_mean_of_what_it_sees() -> None:
    model = model_of(num_kv_heads=2)
    lit = IntervenedModel(model, Changes(gates={"dec.0.1": 0.25}, gate_mode="mean"), SOURCE)
    names = ["dec.0.self.attn", "dec.0.self.v", "dec.0.self.heads"]
    found = run_forced(lit, SOURCE, INPUTS, names)[1]
    attn, v, heads = (found[name] for name in names)
    so_far = np.cumsum(v[1], axis=0) / np.arange(1, 6)[:, None]
    np.testing.assert_allclose(heads[1], 0.25 * attn[1] @ v[1] + 0.75 * so_far, atol=1e-5)
    np.testing.assert_allclose(heads[0], attn[0] @ v[0], atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS[:3], ids=lambda kind: kind["positions"])
def test_without_positions_an_encoder_cannot_tell_the_order(kind: dict[str, object]) -> None:
    model, turned = model_of(**kind), [SOURCE[i] for i in (3, 0, 5, 1, 4, 2, 6)]
    for changes, same in ((Changes(positions="zero"), True), (Changes(), False)):
        one, two = (run_forced(IntervenedModel(model, changes, s), s, INPUTS, ["memory"])[1]["memory"] for s in (SOURCE, turned))
        assert np.allclose(one[[3, 0, 5, 1, 4, 2, 6]], two, atol=1e-5) == same


def test_a_shuffle_is_one_order_for_a_seed_and_shifts_do_what_they_say() -> None:
    model = model_of()
    place = ["pos.enc", "pos.dec"]
    normal, shuffled, again, other, shifted = (
        run_forced(IntervenedModel(model, Changes(positions=p), SOURCE), SOURCE, INPUTS, place)[1]["pos.enc"]
        for p in ("normal", "shuffle:1", "shuffle:1", "shuffle:2", "shift:2")
    )
    assert np.array_equal(shuffled, again) and not np.allclose(shuffled, other)
    rows = [int(np.abs(normal - row).sum(axis=1).argmin()) for row in shuffled]
    assert sorted(rows) == list(range(7)) and rows != list(range(7))
    np.testing.assert_allclose(shifted[:5], normal[2:], atol=1e-5)


def test_rotary_positions_are_relative_so_a_shift_changes_nothing_but_a_shuffle_does() -> None:
    model = model_of(positions="rotary")
    assert torch.allclose(logits(model, Changes(positions="shift:5")), logits(model, Changes()), atol=1e-4)
    assert not torch.allclose(logits(model, Changes(positions="shuffle:5")), logits(model, Changes()), atol=1e-2)


def test_what_cannot_be_done_is_said_at_once() -> None:
    model = model_of()
    wrong = Changes(mask_source=(7,), pins=(Pin(step=0, source=9), Pin(step=0, source=1, layers=(2,))))
    with pytest.raises(ConfigError, match="no source piece 7") as caught:
        IntervenedModel(model, wrong, SOURCE)
    assert len(caught.value.problems) == 3
    with pytest.raises(ConfigError, match="hides the whole source"):
        IntervenedModel(model, Changes(mask_source=tuple(range(7))), SOURCE)
    IntervenedModel(model, Changes(mask_source=tuple(range(6))), SOURCE)
    with pytest.raises(ConfigError, match=r"cross\.2\.0 is not there: cross has layers 0 to 1"):
        IntervenedModel(model, Changes(gates={"cross.2.0": 0}), SOURCE)
    with pytest.raises(LengthError, match="leaves 6 of the model's 40"):
        IntervenedModel(model, Changes(positions="shift:34"), SOURCE)
    IntervenedModel(model, Changes(positions="shift:33"), SOURCE)
