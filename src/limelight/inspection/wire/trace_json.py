"""A trace is written as JSON, for the page, for files and for other programs, and read back.

    {"v": 1, "verified": true, "model": {...},
     "source": {"text": ..., "tokens": [{"id", "piece", "start", "end", "word"}], "masked": [4]},
     "target": {"text": ..., "logp": -3.12, "inputs": ["<s>", ...], "tokens": [{"id", "piece", "logp", "entropy", "topk", ...}]},
     "attn": {"enc": {...}, "dec": {..., "causal": true}, "cross": {...}},      arrays as in `wire.arrays`: [layer, head, query, key]
     "stages": {"enc.0.scores": {...}},                                          those that were asked for
     "nbest": [...], "beam": {...}, "align": {...}, "stats": {...}, "interventions": {...}, "baseline": {...}, "timing_ms": {...}}

Which cells are masked is said by rules, `causal` and `source.masked`; a zero among the weights is a small weight. Log-probabilities
have four digits after the point.
"""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Final

import numpy as np

from limelight.errors import DataError, LimelightError
from limelight.inspection.head_names import KINDS, full_name
from limelight.inspection.interventions import Changes
from limelight.inspection.trace import (
    Align,
    Array,
    BeamTree,
    Guess,
    HeadStats,
    ModelFacts,
    Node,
    Side,
    SourceToken,
    TargetSide,
    TargetToken,
    Trace,
    Verdict,
)
from limelight.inspection.wire.arrays import Encoding, unpack
from limelight.inspection.wire.parts import PARTS, check_size, pack_attention, pack_stages, resolve_stages, size

VERSION: Final = 1
DIGITS: Final = 4
NAMES: Final = {"pins": "pin", "attention_temperature": "attn_temperature"}  # of changes, there and in the API
LANGUAGES: Final = {"source": "src_lang", "target": "tgt_lang"}  # of the model's facts


def as_json(
    trace: Trace,
    include: Sequence[str] = PARTS,
    layers: Sequence[int] | None = None,
    heads: Sequence[int] | None = None,
    encoding: Encoding = "u8",
    most_bytes: int | None = None,
) -> dict[str, Any]:
    """`include`: parts (`wire.parts.PARTS`), groups of stages (`GROUPS`) or stages by name. `layers` and `heads` restrict the arrays,
    which then say what they hold. Stages are never in single bytes: u8 makes them f16."""
    stages = resolve_stages(include, trace.model, layers, heads)
    if most_bytes is not None:
        check_size(size(trace, "attn" in include, stages, layers, heads, encoding), most_bytes)
    tokens = "tokens" in include
    found: dict[str, Any] = {
        "v": VERSION,
        "verified": trace.verified,
        "difference": _round(trace.difference),
        "model": {LANGUAGES.get(name, name): value for name, value in asdict(trace.model).items()},
        "source": {
            **(asdict(trace.source) if tokens else {"text": trace.source.text}),
            "masked": sorted(set(trace.changes.mask_source)),
        },
        "target": _target(trace.target, tokens),
        "nbest": [_round(asdict(each)) for each in trace.nbest],
        "timing_ms": {name: round(value, 2) for name, value in trace.timing.items()},
    }
    if "attn" in include:
        found["attn"] = {kind: pack_attention(kind, trace, layers, heads, encoding) for kind in KINDS}
    if stages:
        found["stages"] = pack_stages(trace, stages, heads, encoding)
    if "beam" in include:
        found["beam"] = _beam(trace.beam)
    if "align" in include:
        found["align"] = _round(asdict(trace.align))
    if "stats" in include:
        found["stats"] = _stats(trace)
    if trace.changes != Changes():
        found["interventions"] = changes_as_json(trace.changes)
    if trace.baseline is not None:
        found["baseline"] = _round(asdict(trace.baseline))
    return found


def changes_as_json(changes: Changes) -> dict[str, Any]:
    return {NAMES.get(name, name): value for name, value in changes.model_dump(mode="json").items()}


def changes_from_json(value: dict[str, Any]) -> Changes:
    ours = {wire: name for name, wire in NAMES.items()}
    return Changes(**{ours.get(name, name): given for name, given in value.items()})


def from_json(value: dict[str, Any]) -> Trace:
    """A whole trace, with those stages that are in it. Weights that came as bytes are off by at most 1/510."""
    try:
        return _read(value)
    except LimelightError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DataError(
            f"this is no trace of version {VERSION}, or only a part of one ({type(error).__name__}: {error}); "
            "make it with all layers, heads and parts"
        ) from None


def _read(value: dict[str, Any]) -> Trace:
    if value["v"] != VERSION:
        raise DataError(f"this trace has version {value['v']!r}, and {VERSION} is known; make it again")
    model, stats, target = dict(value["model"]), value["stats"], dict(value["target"])
    model.update({name: model.pop(wire) for name, wire in LANGUAGES.items()})
    target["tokens"] = [TargetToken(**{**each, "topk": [tuple(one) for one in each["topk"]]}) for each in target["tokens"]]
    baseline, align = value.get("baseline"), dict(value["align"])
    align.update({name: [tuple(each) for each in align[name]] for name in ("links", "words")})
    return Trace(
        model=ModelFacts(**model),
        source=Side(value["source"]["text"], [SourceToken(**each) for each in value["source"]["tokens"]]),
        target=TargetSide(**target),
        attention={kind: _weights(value["attn"][kind]) for kind in KINDS},
        align=Align(**align),
        heads=[HeadStats(**each) for each in stats["heads"]],
        coverage=stats["coverage"],
        coverage_deviation=stats["coverage_deviation"],
        absent_in=stats["absent_in"],
        absent_out=stats["absent_out"],
        verified=value["verified"],
        difference=value["difference"],
        changes=changes_from_json(value.get("interventions", {})),
        nbest=[Guess(**each) for each in value["nbest"]],
        beam=_tree(value.get("beam")),
        baseline=None if baseline is None else Verdict(**{k: v for k, v in baseline.items() if k != "trace_id"}),
        timing=value["timing_ms"],
        kept={full_name(name): unpack(array) for name, array in value.get("stages", {}).items()},
        v=VERSION,
    )


def _target(target: TargetSide, tokens: bool) -> dict[str, Any]:
    told: dict[str, Any] = _round(asdict(target))
    return told if tokens else {name: each for name, each in told.items() if name not in ("tokens", "inputs")}


def _stats(trace: Trace) -> dict[str, Any]:
    names = ("coverage", "coverage_deviation", "absent_in", "absent_out")
    heads = [asdict(each) for each in trace.heads]
    return dict(_round({"heads": heads, **{name: getattr(trace, name) for name in names}}))


def _beam(tree: BeamTree | None) -> dict[str, Any] | None:
    if tree is None:
        return None
    nodes = [{**vars(node), "kept": int(node.kept), "done": int(node.done)} for node in tree.nodes]
    return {"size": tree.size, "nodes": _round(nodes)}


def _tree(value: dict[str, Any] | None) -> BeamTree | None:
    if value is None:
        return None
    nodes = [Node(**{**each, "kept": bool(each["kept"]), "done": bool(each["done"])}) for each in value["nodes"]]
    return BeamTree(value["size"], nodes)


def _weights(value: dict[str, Any]) -> Array:
    if "layers" in value or "heads" in value:
        raise DataError("this trace has only some layers or heads; make it with all of them")
    return unpack(value).astype(np.float32)


def _round(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, DIGITS)
    if isinstance(value, dict):
        return {name: _round(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_round(each) for each in value]
    return value
