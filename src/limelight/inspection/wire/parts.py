"""The parts of a trace that are sent are chosen here, and measured before any of them is made.

resolve_stages(["scores", "enc.0.q"], facts, layers=[5])  ->  enc.5.scores, enc.5.scaled, ..., dec.5.cross.masked, enc.0.q
"""

from collections.abc import Iterable, Sequence
from typing import Final

from limelight.errors import ConfigError, LengthError
from limelight.inspection.head_names import KINDS, Kind, full_name, stage_names
from limelight.inspection.trace import ModelFacts, Trace
from limelight.inspection.wire.arrays import BYTES, Encoding

PARTS: Final = ("attn", "tokens", "beam", "align", "stats")  # what a trace has unless one says otherwise
GROUPS: Final[dict[str, tuple[str, ...]]] = {  # stages that go together, by the last word of their names
    "pos": ("src.embed", "pos.enc", "enc.in", "tgt.embed", "pos.dec", "dec.in"),
    "qkv": ("q", "k", "v"),
    "scores": ("scores", "scaled", "masked"),
    "ffn": ("ffn",),
    "resid": ("heads", "concat", "add_norm", "out", "memory", "decoded"),
    "logits": ("logits",),
}
BY_HEAD: Final = (
    "q",
    "k",
    "v",
    "scores",
    "scaled",
    "masked",
    "attn",
    "heads",
)  # stages with an axis of heads, the first


def resolve_stages(include: Iterable[str], model: ModelFacts, layers: Sequence[int] | None) -> list[str]:
    """Names of stages, each once, as they were asked for: by name, or by group. `layers` restrict the groups."""
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


def _belongs(stage: str, group: tuple[str, ...], layers: Sequence[int] | None) -> bool:
    if layers is not None and (layer := layer_of(stage)) is not None and layer not in layers:
        return False
    return stage in group or stage.split(".")[-1] in group


def layer_of(stage: str) -> int | None:
    """dec.2.cross.q -> 2; memory -> None"""
    parts = stage.split(".")
    return int(parts[1]) if len(parts) > 1 and parts[1].isdigit() else None


def select_numbers(wanted: Sequence[int] | None, there: int) -> list[int]:
    """Those of the numbers that exist, in order; all, if nothing is said."""
    return list(range(there)) if wanted is None else sorted({each for each in wanted if each < there})


def check_there(layers: Sequence[int] | None, heads: Sequence[int] | None, model: ModelFacts) -> None:
    """A layer may be in the encoder alone; one that is nowhere was a mistake."""
    most = max(model.enc_layers, model.dec_layers)
    problems = [f"layer {each}: there are layers 0 to {most - 1}" for each in layers or () if not 0 <= each < most]
    problems += [
        f"head {each}: there are heads 0 to {model.heads - 1}" for each in heads or () if not 0 <= each < model.heads
    ]
    if problems:
        raise ConfigError("these parts of the model are not there:", problems)


def size(
    trace: Trace,
    attention: bool,
    stages: Sequence[str],
    layers: Sequence[int] | None,
    heads: Sequence[int] | None,
    encoding: Encoding,
) -> int:
    """Bytes of all numbers, before base64."""
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
    rows, columns = _sides(stage, trace)
    if word in ("scores", "scaled", "masked", "attn"):
        return round(model.heads * rows * columns * share)
    if stage in ("logits", "probs"):
        return rows * model.vocab
    if word in ("k", "v"):
        rows = columns
    return round(rows * model.d_model * (share if word in BY_HEAD else 1))


def _sides(stage: str, trace: Trace) -> tuple[int, int]:
    kind: Kind = (
        "cross" if ".cross." in stage else "enc" if stage.startswith(("enc.", "src.", "memory", "pos.enc")) else "dec"
    )
    rows, columns = trace.attention[kind].shape[2:]
    return int(rows), int(columns)


def each_head(stage: str) -> bool:
    return stage.split(".")[-1] in BY_HEAD
