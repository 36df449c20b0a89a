"""Every stage follows from those before it, by the equation that is written beside it."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from lit_models import INPUTS, KINDS, SOURCE, model_of

from limelight.errors import ConfigError
from limelight.inspection.head_names import resolve_gates, stage_names
from limelight.inspection.interventions import Changes
from limelight.inspection.tracing.relit_model import IntervenedModel
from limelight.inspection.tracing.stages import run_forced
from limelight.model.transformer import Transformer

Stages = dict[str, Any]
DIMMED = {"enc.1.2": 0.25, "dec.0.*": 0.5, "cross.1.3": 0.0}


def seen(model: Transformer, changes: Changes = Changes(), wanted: list[str] | None = None) -> Stages:  # noqa: B008
    return run_forced(IntervenedModel(model, changes, SOURCE), SOURCE, INPUTS, stage_names(3, 2) if wanted is None else wanted)[1]


@pytest.fixture(params=KINDS, ids=lambda kind: "-".join(map(str, kind.values())))
def model(request: pytest.FixtureRequest) -> Transformer:
    return model_of(**request.param)


@pytest.fixture
def stages(model: Transformer) -> Stages:
    return seen(model, Changes(gates=DIMMED))


def attentions(stages: Stages) -> list[str]:
    return [name.removesuffix(".attn") for name in stages if name.endswith(".attn")]


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def close(one: Any, other: Any) -> None:
    np.testing.assert_allclose(one, other, atol=1e-5, rtol=1e-5)


def norm_of(model: Transformer, block: Any, name: str) -> Any:
    with torch.no_grad():
        return lambda x: getattr(block, name)(torch.from_numpy(x)).detach().numpy()


def test_every_named_stage_is_there_in_its_shape_and_nothing_else(model: Transformer, stages: Stages) -> None:
    assert set(stages) == set(stage_names(3, 2))
    assert len(attentions(stages)) == 3 + 2 + 2
    for name in attentions(stages):
        rows, columns = (7 if name.startswith("enc") else 5), (7 if name.startswith("enc") or "cross" in name else 5)
        shapes = {
            "q": (4, rows, 6),
            "k": (4, columns, 6),
            "v": (4, columns, 6),
            "heads": (4, rows, 6),
            "concat": (rows, 24),
        }
        shapes |= dict.fromkeys(("scores", "scaled", "masked", "attn"), (4, rows, columns))
        assert {stage: stages[f"{name}.{stage}"].shape for stage in shapes} == shapes
    assert stages["memory"].shape == (7, 24) and stages["logits"].shape == (5, 17)
    assert stages["src.ids"].tolist() == SOURCE and stages["tgt.ids"].tolist() == INPUTS


def test_attention_recomputes_from_stage_to_stage(model: Transformer, stages: Stages) -> None:
    gates = resolve_gates(DIMMED, model.config)
    for name in attentions(stages):
        q, k, v, scores, scaled, masked, attn, heads, concat = (
            stages[f"{name}.{s}"] for s in ("q", "k", "v", "scores", "scaled", "masked", "attn", "heads", "concat")
        )
        close(scores, q @ k.swapaxes(1, 2))
        close(scaled, scores / math.sqrt(6))
        assert np.array_equal(masked[np.isfinite(masked)], scaled[np.isfinite(masked)])
        close(attn, softmax(masked))
        kind, layer = (
            ("enc" if name.startswith("enc") else "cross" if name.endswith("cross") else "dec"),
            int(name.split(".")[1]),
        )
        close(heads, attn @ v * gates[kind][layer][:, None, None])  # type: ignore[index]
        block = (model.encoder if kind == "enc" else model.decoder).blocks[layer]
        out = (block.cross_attention if kind == "cross" else block.attention).out
        flat = torch.from_numpy(heads.swapaxes(0, 1).reshape(heads.shape[1], -1).copy())
        close(concat, out(flat).detach().numpy())


def test_rows_sum_to_one_and_what_is_masked_is_exactly_nothing(model: Transformer) -> None:
    stages = seen(model, Changes(mask_source=(2, 5)))
    for name in attentions(stages):
        attn, masked = stages[f"{name}.attn"], stages[f"{name}.masked"]
        close(attn.sum(axis=-1), np.ones(attn.shape[:2]))
        hidden = np.zeros(attn.shape[1:], bool)
        if name.endswith("self"):
            hidden = np.triu(np.ones_like(hidden), 1)
        else:
            hidden[:, [2, 5]] = True
        assert (attn[:, hidden] == 0).all() and (masked[:, hidden] == -np.inf).all()
        assert (attn[:, ~hidden] > 0).all() and np.isfinite(masked[:, ~hidden]).all()


def test_sub_layers_are_added_and_normed_in_the_order_of_the_model(model: Transformer, stages: Stages) -> None:
    pre = model.config.norm_order == "pre"
    for side, stack, first in (("enc", model.encoder, "enc.in"), ("dec", model.decoder, "dec.in")):
        x = stages[first]
        for layer, block in enumerate(stack.blocks):
            parts = [("", "attention_norm")] if side == "enc" else [(".self", "attention_norm"), (".cross", "cross_attention_norm")]
            for part, norm in parts:
                added = x + stages[f"{side}.{layer}{part}.concat"]
                close(stages[f"{side}.{layer}{part}.add_norm"], added if pre else norm_of(model, block, norm)(added))
                x = stages[f"{side}.{layer}{part}.add_norm"]
            fed = norm_of(model, block, "feed_forward_norm")(x) if pre else x
            close(stages[f"{side}.{layer}.ffn"], block.feed_forward(torch.from_numpy(fed)).detach().numpy())
            added = x + stages[f"{side}.{layer}.ffn"]
            close(stages[f"{side}.{layer}.out"], added if pre else norm_of(model, block, "feed_forward_norm")(added))
            x = stages[f"{side}.{layer}.out"]
        close(stages["memory" if side == "enc" else "decoded"], norm_of(model, stack, "norm")(x))


def test_embeddings_positions_and_probabilities_follow_too(model: Transformer, stages: Stages) -> None:
    embedding = model.source_embedding or model.target_embedding
    close(stages["src.embed"], embedding.weight.detach().numpy()[SOURCE] * math.sqrt(24))
    close(stages["enc.in"], stages["src.embed"] + stages["pos.enc"])
    close(stages["dec.in"], stages["tgt.embed"] + stages["pos.dec"])
    rotary = model.config.positions == "rotary"
    assert (np.abs(stages["pos.enc"]).max() == 0) == rotary  # what is turned in attention is not added here
    close(stages["pos.enc"][:5], stages["pos.dec"]) if model.config.positions == "sinusoidal" else None
    close(stages["logits"], model.logits(torch.from_numpy(stages["decoded"])).detach().numpy())
    close(stages["probs"], softmax(stages["logits"]))


def test_looking_changes_no_bit_of_what_the_model_says(model: Transformer) -> None:
    wanted = ["enc.0.attn"]
    lit = IntervenedModel(model, Changes(), SOURCE)
    first, _ = run_forced(lit, SOURCE, INPUTS, stage_names(3, 2))
    second, found = run_forced(lit, SOURCE, INPUTS, wanted)
    assert torch.equal(first, second) and list(found) == wanted
    assert not any(light.attention.looks for light in lit.model.spotlights())
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in lit.model.modules())


def test_the_temperature_is_in_what_is_scaled() -> None:
    stages = seen(model_of(), Changes(attention_temperature=2.5))
    close(stages["dec.1.cross.scaled"], stages["dec.1.cross.scores"] / (math.sqrt(6) * 2.5))
    close(stages["enc.2.attn"], softmax(stages["enc.2.masked"]))


def test_a_stage_that_is_not_there_is_named_in_the_error() -> None:
    with pytest.raises(ConfigError, match=r"no stage enc\.3\.q"):
        seen(model_of(), wanted=["enc.3.q", "memory"])
