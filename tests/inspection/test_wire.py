"""A trace as JSON: the same numbers as in Python, small, whole, and back again."""

import base64
import gzip
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from limelight.engines.torch import TorchEngine
from limelight.errors import ConfigError, DataError, LengthError
from limelight.inspection.head_names import KINDS, full_name, stage_names
from limelight.inspection.trace import Trace
from limelight.inspection.wire.arrays import SCALE, Encoding, pack, unpack
from limelight.inspection.wire.parts import GROUPS, PARTS, resolve_stages, size
from limelight.inspection.wire.trace_json import as_json, changes_as_json, changes_from_json, from_json
from limelight.model.config import ModelConfig
from limelight.model.transformer import Transformer
from limelight.translator import Translator

BUNDLE = Path(__file__).parents[1] / "bundles" / "format-1"
TEXT = "nine hundred eighty-seven"
CHANGES = {"gates": {"enc.0.*": 0.5, "cross.1.2": 0.0}, "mask_source": (1,), "positions": "shuffle:3"}


@pytest.fixture(scope="module")
def translator() -> Iterator[Translator]:
    made = Translator.load(BUNDLE, threads=1)
    yield made
    made.close()


@pytest.fixture(scope="module")
def trace(translator: Translator) -> Trace:
    return translator.trace(TEXT)


@pytest.fixture(scope="module")
def changed(translator: Translator) -> Trace:
    return translator.trace(TEXT, **CHANGES)


@pytest.fixture(scope="module")
def base(translator: Translator) -> Translator:
    return of_chance(translator, "post")


def of_chance(translator: Translator, norm_order: str) -> Translator:
    """The paper's base in layers and heads, narrow, with weights of chance; its pieces are those of the bundle."""
    torch.manual_seed(1)
    shape = translator.settings.model.changed(
        encoder_layers=6, decoder_layers=6, num_heads=8, d_model=64, d_ff=128, max_length=300, norm_order=norm_order
    )
    model = Transformer(ModelConfig(**shape.model_dump()))
    settings = translator.settings.changed(model=shape, alignment=None)
    return Translator(TorchEngine(model), settings, *translator.tokenizers)


def sent(value: dict[str, Any]) -> dict[str, Any]:
    """Through real JSON, without numbers that JSON does not have."""
    back: dict[str, Any] = json.loads(json.dumps(value, allow_nan=False))
    return back


def read(array: dict[str, Any]) -> Any:
    """As any program would that knows the format and nothing of ours."""
    if array["enc"] == "json":
        return np.array([-math.inf if each is None else each for each in array["data"]]).reshape(array["shape"])
    raw, kinds = base64.b64decode(array["data"]), {"u8": "u1", "f16": "<f2", "f32": "<f4"}
    return np.frombuffer(raw, kinds[array["enc"]]).astype(np.float64).reshape(array["shape"]) * array.get("scale", 1)


@pytest.mark.parametrize(("encoding", "near"), [("u8", SCALE / 2), ("f16", 5e-4), ("f32", 1e-9), ("json", 1e-6)])
def test_weights_come_as_they_are_in_python(trace: Trace, encoding: Encoding, near: float) -> None:
    told = sent(as_json(trace, encoding=encoding))["attn"]
    for kind in KINDS:
        assert told[kind]["shape"] == list(trace.attention[kind].shape) and told[kind]["enc"] == encoding
        np.testing.assert_allclose(read(told[kind]), trace.attention[kind], rtol=0, atol=near)
    assert [told[kind].get("causal", False) for kind in KINDS] == [False, True, False]


def test_every_number_of_the_pieces_is_that_of_python(trace: Trace) -> None:
    told = sent(as_json(trace))
    assert told["v"] == 1 and told["verified"] is True and told["model"]["tgt_lang"] == "de"
    assert told["source"]["text"] == trace.source.text and told["target"]["text"] == trace.target.text
    for given, ours in zip(told["target"]["tokens"], trace.target.tokens, strict=True):
        assert (given["id"], given["piece"], given["word"], given["rank"]) == (
            ours.id,
            ours.piece,
            ours.word,
            ours.rank,
        )
        for name in ("logp", "entropy", "margin"):
            assert given[name] == pytest.approx(getattr(ours, name), abs=5.1e-5)
        assert [each[:2] for each in given["topk"]] == [list(each[:2]) for each in ours.topk]
        assert [each[2] for each in given["topk"]] == pytest.approx([each[2] for each in ours.topk], abs=5.1e-5)
    assert told["target"]["logp"] == pytest.approx(sum(each.logp for each in trace.target.tokens), abs=1e-4)
    for given, head in zip(told["stats"]["heads"], trace.heads, strict=True):
        assert given["id"] == head.id and given["entropy"] == pytest.approx(head.entropy, abs=5.1e-5)
    assert told["stats"]["coverage"] == pytest.approx(trace.coverage, abs=5.1e-5)
    assert [link[:2] for link in told["align"]["links"]] == [list(link[:2]) for link in trace.align.links]
    assert trace.beam is not None and len(told["beam"]["nodes"]) == len(trace.beam.nodes) > 20
    for given, node in zip(told["beam"]["nodes"], trace.beam.nodes, strict=True):
        assert (given["n"], given["p"], given["t"], given["id"]) == (node.n, node.p, node.t, node.id)
        assert (given["kept"], given["done"]) == (int(node.kept), int(node.done))
        assert given["cum"] == pytest.approx(node.cum, abs=5.1e-5)


@pytest.mark.parametrize("which", ["trace", "changed"])
@pytest.mark.parametrize(("encoding", "near"), [("u8", SCALE / 2), ("f32", 1e-9)])
def test_what_was_sent_can_be_read_back(which: str, encoding: Encoding, near: float, request: Any) -> None:
    trace: Trace = request.getfixturevalue(which)
    back = from_json(sent(as_json(trace, encoding=encoding)))
    for kind in KINDS:
        np.testing.assert_allclose(back.attention[kind], trace.attention[kind], rtol=0, atol=near + 1e-7)
        assert back.attention[kind].dtype == np.float32
    assert (back.model, back.source, back.changes) == (trace.model, trace.source, trace.changes)
    assert (back.target.text, back.target.finish, back.target.inputs) == (
        trace.target.text, trace.target.finish, trace.target.inputs,
    )  # fmt: skip
    assert (back.baseline is None) == (trace.baseline is None) == (which == "trace")
    if trace.baseline is not None and back.baseline is not None:
        assert back.baseline.tokens == trace.baseline.tokens and len(back.baseline.tokens) == len(back.baseline.deltas)
        told = sent(as_json(trace))
        del told["baseline"]["tokens"]  # as files were before
        assert from_json(told).baseline is not None
    # What was rounded once is the same when it is sent again.
    assert as_json(back, encoding=encoding) == as_json(trace, encoding=encoding)


def test_masked_cells_are_told_by_rules_and_are_exactly_zero(changed: Trace) -> None:
    told = sent(as_json(changed))
    assert told["source"]["masked"] == [1] and told["attn"]["dec"]["causal"] is True
    dec, cross = read(told["attn"]["dec"]), read(told["attn"]["cross"])
    assert not dec[..., ~np.tri(dec.shape[-1], dtype=bool)].any() and not cross[..., 1].any()
    assert read(told["attn"]["enc"])[..., 1].max() == 0


def test_changes_have_the_names_of_the_api_and_come_back(changed: Trace) -> None:
    told = sent(as_json(changed))["interventions"]
    assert told["gates"] == CHANGES["gates"] and told["mask_source"] == [1] and told["pin"] == []
    assert told["attn_temperature"] == 1.0 and "pins" not in told
    assert changes_from_json(told) == changed.changes and changes_as_json(changed.changes) == told
    assert list(changes_from_json({"gates": {"*": 0.0, "cross.0.1": 1.0}}).gates) == ["*", "cross.0.1"]


def test_what_is_left_as_it_was_has_no_interventions_and_no_baseline(trace: Trace) -> None:
    assert {"interventions", "baseline", "stages"} & as_json(trace).keys() == set()


def test_parts_that_are_not_asked_for_are_not_there(trace: Trace) -> None:
    told = as_json(trace, include=())
    assert set(PARTS) & told.keys() == set() and "tokens" not in told["source"] and "tokens" not in told["target"]
    assert told["target"]["text"] == trace.target.text
    for part in ("attn", "beam", "align", "stats"):
        assert set(PARTS) & as_json(trace, include=[part]).keys() == {part}
    assert "tokens" in as_json(trace, include=["tokens"])["source"]


def test_stages_come_by_name_in_halves_and_minus_infinity_stays(trace: Trace) -> None:
    names = ["enc.0.scores", "dec.1.masked", "cross.1.q", "memory", "logits", "tgt.ids"]
    told = sent(as_json(trace, include=names))["stages"]
    assert list(told) == names and told["enc.0.scores"]["enc"] == "f16" and told["tgt.ids"]["enc"] == "json"
    for name in names:
        ours = trace[name]
        assert told[name]["shape"] == list(ours.shape)
        np.testing.assert_allclose(read(told[name]), ours, rtol=1e-3, atol=1e-4)
    masked = read(told["dec.1.masked"])
    assert np.isneginf(masked).any() and (np.isneginf(masked) == np.isneginf(trace["dec.1.masked"])).all()
    assert from_json(sent(as_json(trace, include=(*PARTS, *names))))["dec.1.masked"].shape == masked.shape


@pytest.mark.parametrize("encoding", ["u8", "f16", "f32", "json"])
def test_scores_beyond_the_range_of_halves_are_not_taken_for_masked(encoding: Encoding) -> None:
    scores = np.array([[1e6, -1e6], [-np.inf, 0.25]], np.float32)
    back = unpack(sent(pack(scores, "f16" if encoding == "u8" else encoding)))
    assert (np.isneginf(back) == np.isneginf(scores)).all() and not np.isposinf(back).any() and back[1, 1] == 0.25


def test_groups_are_stages_of_the_layers_asked_for(trace: Trace) -> None:
    found = resolve_stages(["scores", "pos"], trace.model, [1])
    assert "enc.1.scaled" in found and "dec.1.cross.masked" in found and "dec.1.self.scores" in found
    assert not any(name.startswith(("enc.0", "dec.0")) for name in found) and {"pos.enc", "dec.in"} <= set(found)
    everything = set(resolve_stages(GROUPS, trace.model, None))
    left = {name for name in stage_names(trace.model.enc_layers, trace.model.dec_layers) if name not in everything}
    assert {name.split(".")[-1] for name in left} == {"ids", "attn", "probs"}


def test_layers_and_heads_restrict_arrays_which_say_so(trace: Trace) -> None:
    told = sent(as_json(trace, ("attn", "enc.0.q", "memory"), layers=[1], heads=[3, 0], encoding="f32"))
    assert told["attn"]["enc"]["layers"] == [1] and told["attn"]["cross"]["heads"] == [0, 3]
    np.testing.assert_allclose(read(told["attn"]["cross"]), trace.attention["cross"][[1]][:, [0, 3]], atol=1e-7)
    np.testing.assert_allclose(read(told["stages"]["enc.0.q"]), trace["enc.0.q"][[0, 3]], atol=1e-7)
    assert told["stages"]["enc.0.q"]["heads"] == [0, 3] and "heads" not in told["stages"]["memory"]
    with pytest.raises(DataError, match="only some layers"):
        from_json(sent(as_json(trace, layers=[1])))


def test_the_size_is_known_before_anything_is_made(trace: Trace) -> None:
    for include, layers, heads in (
        (PARTS, None, None),
        (("attn", *GROUPS), [0], [1, 2]),
        (stage_names(trace.model.enc_layers, trace.model.dec_layers), None, [0]),
    ):
        told = as_json(trace, include, layers, heads, "f32")
        arrays = [*told.get("attn", {}).values(), *told.get("stages", {}).values()]
        numbers = sum(math.prod(array["shape"]) for array in arrays)
        stages = resolve_stages(include, trace.model, layers)
        ids = sum(len(trace[name]) for name in stages if name.endswith(".ids"))
        counted = size(trace, "attn" in include, stages, layers, heads, "f32") // 4
        assert counted - numbers == ids * (trace.model.d_model - 1), "ids are counted as if they were as wide as all else"
    with pytest.raises(LengthError, match="fewer layers"):
        as_json(trace, most_bytes=100)
    assert as_json(trace, most_bytes=10**7)


@pytest.mark.parametrize(
    "wrong",
    [{"include": ["attn", "enc.9.q"]}, {"include": ["tokenz"]}, {"layers": [2]}, {"heads": [4]}, {"layers": [-1]}],
)
def test_what_is_not_there_is_named(trace: Trace, wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError) as error:
        as_json(trace, **wrong)
    assert len(error.value.problems) == 1


@pytest.mark.parametrize("damage", ["nothing", "version", "cut", "no base64", "shape", "no tokens", "kind"])
def test_what_is_no_trace_is_refused_as_such(trace: Trace, damage: str) -> None:
    value = sent(as_json(trace))
    if damage == "nothing":
        value = {}
    elif damage == "version":
        value["v"] = 2
    elif damage == "cut":
        value["attn"]["enc"]["data"] = value["attn"]["enc"]["data"][:-8]
    elif damage == "no base64":
        value["attn"]["enc"]["data"] = "*"
    elif damage == "shape":
        value["attn"]["enc"]["shape"][0] = -2
    elif damage == "no tokens":
        del value["target"]["tokens"]
    else:
        value["attn"]["enc"]["enc"] = "u4"
    with pytest.raises(DataError):
        from_json(value)


@pytest.mark.parametrize(("norm_order", "most"), [("post", 60_000), ("pre", 66_000)])
def test_a_base_model_and_24_pieces_fit_into_60_kb_compressed(translator: Translator, norm_order: str, most: int) -> None:
    """With norms first and weights of chance it is noise, which nothing compresses; what a trained model looks at is 45 to 50 KB."""
    words = ["one", "three", "four", "five", "six", "seven", "nine"]
    text = " ".join(words[(at * at + at) % 7] for at in range(23))
    search = translator.settings.search.changed(max_length=24, min_length=23)
    trace = of_chance(translator, norm_order).trace(text, search=search)
    assert {kind: trace.attention[kind].shape for kind in KINDS} == dict.fromkeys(KINDS, (6, 8, 24, 24))
    assert trace.beam is not None and len(trace.beam.nodes) > 200 and len(trace.target.tokens[0].topk) == 8
    told = as_json(trace)
    assert len(json.dumps(told["attn"])) <= 120_000
    assert len(gzip.compress(json.dumps(told, ensure_ascii=False, separators=(",", ":")).encode(), 6)) <= most


@pytest.mark.slow
def test_a_sentence_of_256_pieces_is_sent_layer_by_layer(base: Translator) -> None:
    text = " ".join(["one"] * 255)
    trace = base.trace(text, search=base.settings.search.changed(max_length=40, beam=1))
    pieces = len(trace.source.tokens)
    assert 255 <= pieces <= 257
    whole, one = (size(trace, True, [], layers, None, "u8") for layers in (None, [5]))
    assert whole == 6 * one > 3_000_000
    with pytest.raises(LengthError):
        as_json(trace, most_bytes=1 << 20)
    told = as_json(trace, layers=[5], most_bytes=1 << 20)
    assert told["attn"]["enc"]["shape"] == [1, 8, pieces, pieces]
    np.testing.assert_allclose(read(told["attn"]["enc"])[0], trace.attention["enc"][5], atol=SCALE / 2 + 1e-9)


def test_names_of_stages_may_be_short(trace: Trace) -> None:
    told = as_json(trace, include=["cross.1.attn"])["stages"]
    assert list(told) == ["cross.1.attn"] and full_name("cross.1.attn") == "dec.1.cross.attn"
    np.testing.assert_allclose(read(told["cross.1.attn"]), trace.attention["cross"][1], atol=5e-4)
