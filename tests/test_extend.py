"""docs/extend.md lists what a new part must touch; these fail until the far places know of it."""

import re
from pathlib import Path
from typing import get_args

import pytest

from limelight.inspection.trace import ModelFacts
from limelight.interop.ctranslate2.spec import lacks
from limelight.model.config import Activation, ModelConfig
from limelight.model.feedforward import ACTIVATIONS
from limelight.model.transformer import Transformer
from limelight.planning.cost.size import parameters

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "extend.md").read_text("utf-8")
SHAPE = {"vocab_size": 11, "d_model": 8, "encoder_layers": 1, "decoder_layers": 1, "num_heads": 2, "d_ff": 12}
POSITIONS = get_args(ModelConfig.model_fields["positions"].annotation)


@pytest.mark.parametrize("activation", get_args(Activation))
def test_each_activation_is_known_to_model_plan_and_export(activation: str) -> None:
    config = ModelConfig(**SHAPE, max_length=16, activation=activation)
    assert activation in ACTIVATIONS
    assert sum(weight.numel() for weight in Transformer(config).parameters()) == sum(parameters(config).values())
    assert not lacks(config)


@pytest.mark.parametrize("positions", POSITIONS)
def test_each_position_scheme_is_known_to_model_plan_desk_and_export(positions: str) -> None:
    config = ModelConfig(**SHAPE, max_length=16, positions=positions)
    assert sum(weight.numel() for weight in Transformer(config).parameters()) == sum(parameters(config).values())
    assert positions in get_args(ModelFacts.__annotations__["positions"])
    assert not lacks(config)


@pytest.mark.parametrize(("field", "value"), [("positions", "alibi"), ("activation", "mish")])
def test_what_the_engine_does_not_know_is_refused_by_name(field: str, value: str) -> None:
    config = ModelConfig(**SHAPE, max_length=16).model_copy(update={field: value})
    assert any(each.startswith(f"{field}={value}: the engine knows") for each in lacks(config))


def test_the_files_and_names_of_the_page_exist() -> None:
    for file, name in re.findall(r"`((?:[a-z_0-9]+/)+[a-z_0-9]+\.py)`(?: `([\w.]+)`)?", PAGE):
        text = (ROOT / "src" / "limelight" / file).read_text("utf-8") if not file.startswith("tests/") else ""
        assert all(re.search(rf"\b{part}\b", text) for part in name.split(".") if part), f"{file} has no {name}"
