"""Classes describe the answers of the lighting desk for the OpenAPI document. The answers are made by `inspection.wire.trace_json`; tests
check that they agree.
"""

from typing import Annotated, Literal

from pydantic import BaseModel, Field, Json

from limelight.serving.http.described_routes import Count, Number, Share, Short, Text
from limelight.serving.http.error_dialects import ErrorAnswer
from limelight.serving.native.responses import WarningAnswer

MANY = 1 << 26  # characters or numbers of an array; `desk.answer_bytes` decides
PIECES = 8192
NODES = 1_000_000

Weight = Annotated[float, Field(ge=0, le=1.001)]  # weights are sums of rounded numbers
Link = tuple[Count, Count, Weight]
Numbers = Annotated[list[Count], Field(max_length=PIECES)]


class ArrayAnswer(BaseModel):
    shape: Annotated[list[Count], Field(max_length=8)]
    enc: Literal["u8", "f16", "f32", "json"] = Field(description="u8: value = byte * scale.")
    data: Annotated[str, Field(max_length=MANY)] | Annotated[list[Number | None], Field(max_length=MANY)] = Field(
        description="Row by row, little end first, in base64; or a list, in which null is minus infinity."
    )
    scale: Share | None = None
    causal: bool | None = Field(default=None, description="Columns after the row are masked.")
    layers: Numbers | None = Field(default=None, description="Those that are there, if not all.")
    heads: Numbers | None = Field(default=None, description="Those that are there, if not all.")


class AttentionAnswer(BaseModel):
    """Each [layer, head, query, key]."""

    enc: ArrayAnswer
    dec: ArrayAnswer
    cross: ArrayAnswer


class TracedModel(BaseModel):
    id: Short
    step: Count | None = Field(description="Of the training; null: not known.")
    sha: Short
    enc_layers: Count
    dec_layers: Count
    heads: Count
    d_model: Count
    d_ff: Count
    norm: Short
    positions: Short
    src_lang: Short
    tgt_lang: Short
    vocab: Count


class SourcePiece(BaseModel):
    id: Count
    piece: Short
    start: Count = Field(description="In characters of the text.")
    end: Count
    word: Count | None


class SourceAnswer(BaseModel):
    text: Text
    tokens: Annotated[list[SourcePiece], Field(max_length=PIECES)] | None = None
    masked: Numbers = Field(description="Columns that are hidden.")


class TargetPiece(BaseModel):
    id: Count
    piece: Short
    word: Count | None
    logp: Number
    entropy: Number = Field(description="Of the prediction, in bits.")
    rank: Count = Field(description="0: the most probable.")
    margin: Number
    topk: Annotated[list[tuple[Count, Short, Number]], Field(max_length=100)]


class TargetAnswer(BaseModel):
    text: Text
    finish: Literal["eos", "length"]
    logp: Number
    score: Number
    inputs: Annotated[list[Short], Field(max_length=PIECES)] | None = Field(
        default=None, description="What the decoder reads; row t predicts tokens[t]."
    )
    tokens: Annotated[list[TargetPiece], Field(max_length=PIECES)] | None = None


class GuessAnswer(BaseModel):
    text: Text
    logp: Number
    score: Number
    node: Count | None


class NodeAnswer(BaseModel):
    n: Count
    p: Annotated[int, Field(ge=-1, le=NODES)] = Field(description="The parent; -1 for the root.")
    t: Count
    id: Count
    piece: Short
    lp: Number
    cum: Number
    kept: Annotated[int, Field(ge=0, le=1)]
    done: Annotated[int, Field(ge=0, le=1)]


class BeamAnswer(BaseModel):
    size: Count
    nodes: Annotated[list[NodeAnswer], Field(max_length=NODES)]


class AlignAnswer(BaseModel):
    method: Short
    head: Short
    links: Annotated[list[Link], Field(max_length=NODES)] = Field(description="Source piece, target piece, weight.")
    words: Annotated[list[Link], Field(max_length=NODES)] = Field(description="Source word, target word, weight.")


class HeadAnswer(BaseModel):
    id: Short
    entropy: Number
    diagonal: Number
    end_mass: Number
    gate: Share
    importance: Number | None


class StatsAnswer(BaseModel):
    heads: Annotated[list[HeadAnswer], Field(max_length=NODES)]
    coverage: Annotated[list[Number], Field(max_length=PIECES)]
    coverage_deviation: Number
    absent_in: Number
    absent_out: Number


class BaselineAnswer(BaseModel):
    trace_id: Short = Field(description="Of the same without interventions.")
    text: Text
    logp: Number
    delta_logp: Number
    deltas: Annotated[list[Number], Field(max_length=PIECES)]
    chrf: Number
    tokens: Annotated[list[Short], Field(max_length=PIECES)] = Field(description="Pieces, one for each of the deltas.")


class BesideAnswer(BaseModel):
    text: Text
    warnings: Annotated[list[WarningAnswer], Field(max_length=100)]


class PinAnswer(BaseModel):
    step: Count
    source: Count
    layers: Literal["*"] | Numbers
    strength: Share


class InterventionsAnswer(BaseModel):
    gates: Annotated[dict[str, Share], Field(max_length=10_000)]
    gate_mode: Literal["zero", "mean"]
    mask_source: Numbers
    pin: Annotated[list[PinAnswer], Field(max_length=10_000)]
    positions: Short
    attn_temperature: Number


class TraceAnswer(BaseModel):
    v: Literal[1]
    trace_id: Short
    verified: bool = Field(description="The search and the pass that is shown agree.")
    difference: Number = Field(description="Between their log-probabilities.")
    model: TracedModel
    source: SourceAnswer
    target: TargetAnswer
    nbest: Annotated[list[GuessAnswer], Field(max_length=100)]
    attn: AttentionAnswer | None = None
    stages: Annotated[dict[str, ArrayAnswer], Field(max_length=10_000)] | None = None
    beam: BeamAnswer | None = None
    align: AlignAnswer | None = None
    stats: StatsAnswer | None = None
    interventions: InterventionsAnswer | None = None
    baseline: BaselineAnswer | None = Field(default=None, description="Only with interventions.")
    translation: BesideAnswer | None = Field(
        default=None,
        description="What /translate gives, where that is another text: a loop was searched again, something protected, a text cut.",
    )
    timing_ms: Annotated[dict[str, Number], Field(max_length=100)]


class EffectAnswer(BaseModel):
    piece: Short
    effect: Number = Field(description="What the piece added to the log-probability; below 0 it spoke against it.")
    share: Number = Field(description="Of the effects of all pieces, by size.")


class UnmatchedAnswer(BaseModel):
    kind: Literal["omission", "addition"]
    word: Short
    pieces: Annotated[list[Count], Field(max_length=PIECES)] = Field(description="Of the source for an omission, else of the translation.")
    effect: Number = Field(description="The lower, the surer.")


class WhyAnswer(BaseModel):
    word: Short
    first: Count = Field(description="The piece that was asked for.")
    instead_of: Short | None
    method: Short
    logp: Number = Field(description="Of the piece; with instead_of, how much more likely it was than that.")
    source_share: Weight = Field(description="How far it followed the source.")
    source: Annotated[list[EffectAnswer], Field(max_length=PIECES)]
    prefix: Annotated[list[EffectAnswer], Field(max_length=PIECES)] = Field(description="Of the translation before it, without its start.")
    gap: Number | None = Field(description="Of integrated gradients: how far their sum is from what it should be, as a part of it.")
    unmatched: Annotated[list[UnmatchedAnswer], Field(max_length=2 * PIECES)] | None = Field(default=None, description="With `check`.")


class ImportantHead(BaseModel):
    id: Short
    delta_logp: Number = Field(description="Of a sentence, on average, when the head is muted; the lower, the more it matters.")


class ImportanceAnswer(BaseModel):
    model: Short
    sentences: Count
    skipped: Count = Field(description="Sentences of the set that are too long, and any whose translation is.")
    heads: Annotated[list[ImportantHead], Field(max_length=NODES)]


class RankingProgress(BaseModel):
    model: Short
    done: Count = Field(description="Passes.")
    total: Count


class RankingDone(BaseModel):
    took_ms: Number


class RankingEvent(BaseModel):
    """Each event. Its data is one line of JSON."""

    event: Literal["progress", "result", "done", "error"]
    data: Json[RankingProgress | ImportanceAnswer | RankingDone | ErrorAnswer] = Field(json_schema_extra={"maxLength": MANY})


class ProbeAnswer(BaseModel):
    n: Count
    source: Text
    steps: Annotated[list[Count], Field(max_length=100_000)]


class ProbesAnswer(BaseModel):
    model: Short
    probes: Annotated[list[ProbeAnswer], Field(max_length=1_000)]
