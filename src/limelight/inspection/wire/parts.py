"""The parts of a trace that are sent are chosen here, and measured before any of them is made."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from limelight.errors import ConfigError, LengthError
from limelight.inspection.head_names import ATTENTION_STAGES, KINDS, Kind, full_name, stage_names
from limelight.inspection.trace import ModelFacts, Trace
from limelight.inspection.wire.arrays import BYTES, Encoding, pack

PARTS: Final = ("attn", "tokens", "beam", "align", "stats")  # what a trace has unless one says otherwise
GROUPS: Final[dict[str, tuple[str, ...]]] = {  # stages that go together, by the last word of their names
    "pos": ("src.embed", "pos.enc", "enc.in", "tgt.embed", "pos.dec", "dec.in"),
    "qkv": ("q", "k", "v"),
    "scores": ("scores", "scaled", "masked"),
    "ffn": ("ffn",),
    "resid": ("heads", "concat", "add_norm", "out", "memory", "decoded"),
    "logits": ("logits",),
}
BY_HEAD: Final = ATTENTION_STAGES[:-2]  # stages with an axis of heads, the first
Chosen = Sequence[int] | None  # layers or heads; all of them, if nothing is said


def resolve_stages(include: Iterable[str], model: ModelFacts, layers: Chosen, heads: Chosen = None) -> list[str]:
    """Names of stages, each once, as they were asked for: by name, or by group. `layers` restrict the groups."""
    _check_there(layers, heads, model)
    every, problems = stage_names(model.enc_layers, model.dec_layers), []
    known, found = set(every), dict[str, None]()
    for name in include:
        if name in PARTS:
            continue
        if name in GROUPS:
            found.update(dict.fromkeys(each for each in every if _belongs(each, GROUPS[name], layers)))
        elif full_name(name) in known:
            found[name] = None
        else:
            problems.append(f"{name}: there is no such part or stage")
    if problems:
        parts = ", ".join((*PARTS, *GROUPS))
        raise ConfigError(f"a trace has {parts}, and stages such as enc.0.scores, dec.1.cross.q and logits:", problems)
    return list(found)


def _belongs(stage: str, group: tuple[str, ...], layers: Chosen) -> bool:
    if layers is not None and (layer := layer_of(stage)) is not None and layer not in layers:
        return False
    return stage in group or stage.split(".")[-1] in group


def layer_of(stage: str) -> int | None:
    """dec.2.cross.q -> 2; memory -> None"""
    parts = stage.split(".")
    return int(parts[1]) if len(parts) > 1 and parts[1].isdigit() else None


def select_numbers(wanted: Chosen, there: int) -> list[int]:
    """Those of the numbers that exist, in order; all, if nothing is said."""
    return list(range(there)) if wanted is None else sorted({each for each in wanted if each < there})


def _check_there(layers: Chosen, heads: Chosen, model: ModelFacts) -> None:
    """A layer may be in the encoder alone; one that is nowhere was a mistake."""
    sizes = (("layer", layers, max(model.enc_layers, model.dec_layers)), ("head", heads, model.heads))
    problems = [
        f"{name} {each}: there are {name}s 0 to {most - 1}" for name, chosen, most in sizes for each in chosen or () if not 0 <= each < most
    ]
    if problems:
        raise ConfigError("these parts of the model are not there:", problems)


def size(trace: Trace, attention: bool, stages: Sequence[str], layers: Chosen, heads: Chosen, encoding: Encoding) -> int:
    numbers = 0
    share = len(select_numbers(heads, trace.model.heads)) / trace.model.heads
    for kind in KINDS if attention else ():
        weights = trace.attention[kind]
        numbers += round(len(select_numbers(layers, len(weights))) * weights[0].size * share) if len(weights) else 0
    inside = sum(_numbers(full_name(stage), trace, share) for stage in stages)
    return numbers * BYTES[encoding] + inside * BYTES[stage_encoding(encoding)]


def check_size(needed: int, most: int) -> None:
    if needed > most:
        raise LengthError(
            f"this would be {needed / 1e6:.1f} MB of numbers, and at most {most / 1e6:.1f} MB are given at once; ask for fewer layers, "
            "heads or stages, or for a shorter sentence"
        )


def stage_encoding(encoding: Encoding) -> Encoding:
    """A byte is enough for a weight, and for nothing else."""
    return "f16" if encoding == "u8" else encoding


def _numbers(stage: str, trace: Trace, share: float) -> int:
    """dec.0.cross.k has S rows, dec.0.cross.q has T."""
    model, word = trace.model, stage.split(".")[-1]
    source = stage.startswith(("enc.", "src.", "memory", "pos.enc"))
    rows, columns = map(int, trace.attention["cross" if ".cross." in stage else "enc" if source else "dec"].shape[2:])
    if word in ("scores", "scaled", "masked", "attn"):
        return round(model.heads * rows * columns * share)
    if stage in ("logits", "probs"):
        return rows * model.vocab
    if word in ("k", "v"):
        rows = columns
    return round(rows * model.d_model * (share if word in BY_HEAD else 1))


def pack_attention(kind: Kind, trace: Trace, layers: Chosen, heads: Chosen, encoding: Encoding) -> dict[str, Any]:
    """The weights, with the rule that says which are masked, and which layers and heads they are of where these were chosen."""
    weights = trace.attention[kind]
    told: dict[str, Any] = {"causal": True} if kind == "dec" else {}
    if layers is not None:
        told["layers"] = select_numbers(layers, len(weights))
        weights = weights[told["layers"]]
    if heads is not None:
        told["heads"] = select_numbers(heads, trace.model.heads)
        weights = weights[:, told["heads"]]
    return {**pack(weights, encoding), **told}


def pack_stages(trace: Trace, names: Sequence[str], heads: Chosen, encoding: Encoding) -> dict[str, Any]:
    """A byte is enough for a weight, and for nothing else: u8 makes them f16."""
    found, some = {}, select_numbers(heads, trace.model.heads)
    for name, array in trace.stages(names).items():
        if heads is not None and name.split(".")[-1] in BY_HEAD:
            found[name] = {**pack(array[some], stage_encoding(encoding)), "heads": some}
        else:
            found[name] = pack(array, stage_encoding(encoding))
    return found
