"""What may be turned, by which names, and what is refused."""

import pytest
from lit_models import model_of

from limelight.errors import ConfigError
from limelight.inspection.head_names import Head, full_name, heads_of, parse_attention, resolve_gates, stage_names
from limelight.inspection.interventions import Changes, Pin

CONFIG = model_of().config


def test_later_patterns_win_over_earlier_ones_and_absent_is_one() -> None:
    gates = resolve_gates({"cross.*.*": 0.5, "cross.1.*": 0.2, "cross.1.3": 1.0, "enc.*.2": 0.0}, CONFIG)
    assert gates["cross"].tolist() == [[0.5] * 4, [pytest.approx(0.2)] * 3 + [1.0]]
    assert gates["enc"].tolist() == [[1, 1, 0, 1]] * 3
    assert gates["dec"].tolist() == [[1] * 4] * 2
    assert (resolve_gates({"cross.1.3": 1.0, "cross.*.*": 0.5}, CONFIG)["cross"] == 0.5).all()
    assert all((gate == 0).all() for gate in resolve_gates({"*": 0}, CONFIG).values())


def test_a_head_is_written_and_read() -> None:
    assert str(Head("cross", 5, 2)) == "cross.5.2" and Head.parse("cross.5.2") == ("cross", 5, 2)
    assert [str(head) for head in heads_of(CONFIG)][:5] == ["enc.0.0", "enc.0.1", "enc.0.2", "enc.0.3", "enc.1.0"]
    assert len(heads_of(CONFIG)) == 4 * (3 + 2 + 2)
    for wrong in ("cross.*.2", "cross.5", "src.1.1", "cross.-1.2", "cross.5.2 "):
        with pytest.raises(ConfigError, match="names no head"):
            Head.parse(wrong)


def test_gates_that_are_not_there_are_all_named() -> None:
    with pytest.raises(ConfigError, match="cannot be set") as caught:
        resolve_gates({"enc.3.0": 0, "cross.0.4": 0, "dec.1.3": 0}, CONFIG)
    assert [problem.split()[0] for problem in caught.value.problems] == ["enc.3.0", "cross.0.4"]


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"gates": {"cross": 0}}, "'cross' names no head"),
        ({"gates": {"cross.0.0": 1.1}}, "less than or equal to 1"),
        ({"gates": {"cross.0.0": float("nan")}}, "gates"),
        ({"positions": "shuffle"}, "none of normal, zero, shuffle:SEED"),
        ({"positions": "shift:-1"}, "none of normal"),
        ({"attention_temperature": 0}, "greater than 0"),
        ({"gate_mode": "median"}, "'zero' or 'mean'"),
        ({"mask_source": (-1,)}, "greater than or equal to 0"),
        ({"mask_source": (4,), "pins": (Pin(step=0, source=4),)}, "hidden and pinned at once"),
        ({"pins": ({"step": 0, "source": 1, "strength": 2},)}, "less than or equal to 1"),
        ({"gate": {}}, "did you mean `gates`"),
    ],
)
def test_what_cannot_be_turned_is_refused(values: dict[str, object], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Changes(**values)
    assert said in str(caught.value)


def test_gates_of_one_are_no_change() -> None:
    assert not Changes(gates={"*": 1.0}, gate_mode="mean", pins=(Pin(step=0, source=1, strength=0),)).any()
    assert Changes(gates={"*": 1.0, "enc.0.0": 0.5}).any()


def test_stages_have_one_full_name() -> None:
    assert full_name("cross.2.attn") == "dec.2.cross.attn" and full_name("dec.2.attn") == "dec.2.self.attn"
    names = stage_names(CONFIG.encoder_layers, CONFIG.decoder_layers)
    assert len(names) == len(set(names)) == 3 * 12 + 2 * 22 + 4 + 1 + 4 + 3
    assert all(full_name(name) == name for name in names)
    for text, meant in (("cross.2", ("cross", 2)), ("dec.1.cross.attn", ("cross", 1)), ("dec.1.self", ("dec", 1))):
        assert parse_attention(text) == meant
    with pytest.raises(ConfigError, match="names no attention"):
        parse_attention("cross")
