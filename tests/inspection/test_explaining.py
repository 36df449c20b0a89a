"""One weight, written out: the numbers that are printed lead to the number that is shown."""

import numpy as np
import pytest
from trace_bundle import BUNDLE, TEXT

from limelight import Translator
from limelight.errors import ConfigError
from limelight.inspection.interventions import Pin
from limelight.inspection.tracing.live_trace import LiveTrace


@pytest.fixture(scope="module")
def translator() -> Translator:
    return Translator.load(BUNDLE, engine="torch", threads=1)


@pytest.fixture(scope="module")
def trace(translator: Translator) -> LiveTrace:
    return translator.trace(TEXT, temperature=1.5)


@pytest.mark.parametrize("cell", [("cross.1", 1, 2, 3), ("enc.0", 3, 1, 0), ("dec.1", 0, 4, 2)])
def test_the_products_lead_to_the_weight(trace: LiveTrace, cell: tuple[str, int, int, int]) -> None:
    name, head, row, column = cell
    found = trace.explain(name, head, row, column)
    assert len(found.products) == 8 and found.head == f"{name}.{head}"
    assert [q * k for q, k in zip(found.q, found.k, strict=True)] == pytest.approx(found.products)
    assert sum(found.products) == pytest.approx(found.score, abs=1e-4)
    assert found.score / (np.sqrt(8) * 1.5) == pytest.approx(found.scaled, abs=1e-5)
    assert np.exp(found.scaled - found.highest) / found.total == pytest.approx(found.weight, abs=1e-5)
    kind, layer = name.split(".")
    assert found.weight == pytest.approx(float(trace.attention[kind][int(layer), head, row, column]))  # type: ignore[index]
    assert not found.masked and not found.pinned
    for number in (found.score, found.scaled, found.weight):
        assert f"{number:.4f}" in str(found)
    assert "sqrt(8) * 1.5" in str(found)


def test_it_says_whose_look_it_is(trace: LiveTrace) -> None:
    said = str(trace.explain("cross.1", 1, 2, 3)).split("\n")[0]
    assert repr(trace.target.tokens[2].piece) in said and repr(trace.source.tokens[3].piece) in said


def test_a_hidden_cell_has_the_weight_nothing(trace: LiveTrace) -> None:
    found = trace.explain("dec.0", 0, row=1, column=3)
    assert found.masked and found.weight == found.exponential == 0 and "hidden" in str(found)


def test_a_pinned_weight_is_not_passed_off_as_a_softmax(translator: Translator) -> None:
    pinned = translator.trace(TEXT, pins=[Pin(step=2, source=0, strength=0.5)])
    assert pinned.explain("cross.0", 0, 2, 1).pinned and "moved by a pin" in str(pinned.explain("cross.0", 0, 2, 1))
    assert not pinned.explain("cross.0", 0, 1, 1).pinned


def test_a_cell_that_is_not_there_is_named(trace: LiveTrace) -> None:
    for cell, said in (
        (("cross.2", 0, 0, 0), "no layer 2"),
        (("cross.1", 4, 0, 0), "no head 4"),
        (("cross.1", 0, 0, 99), "no column 99"),
    ):
        with pytest.raises(ConfigError, match=said):
            trace.explain(*cell)
