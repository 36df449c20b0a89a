"""Bodies and queries of the lighting desk are checked to the end, with the limits of this server in them.

{"source": "A cat.", "interventions": {"gates": {"cross.5.2": 0}}}
"""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from limelight.decoding.config import SearchSettings
from limelight.errors import ConfigError
from limelight.inspection.causes import Method
from limelight.inspection.head_names import PATTERN
from limelight.inspection.interventions import POSITIONS, Changes
from limelight.inspection.wire.arrays import Encoding
from limelight.inspection.wire.parts import PARTS
from limelight.inspection.wire.trace_json import changes_from_json
from limelight.serving.http.described_routes import NO_ZERO, Tags
from limelight.serving.native.requests import DIRECTED, Name, StrictRequest, whole, with_limits
from limelight.serving.refusals import BadRequest
from limelight.serving.settings import ServeSettings

Format = Literal["html", "svg", "png", "json", "npz"]
MOST_GATES, MOST_PINS, MOST_LAYERS, MOST_HEADS, MOST_PARTS, MOST_TOPK = 4096, 256, 256, 1024, 512, 32

Number = Annotated[int, Field(ge=0, le=1_000_000), BeforeValidator(whole)]
Layer = Annotated[int, Field(ge=0, le=MOST_LAYERS - 1), BeforeValidator(whole)]
Head = Annotated[int, Field(ge=0, le=MOST_HEADS - 1), BeforeValidator(whole)]
Layers = Annotated[list[Layer], Field(min_length=1, max_length=MOST_LAYERS)]
Heads = Annotated[list[Head], Field(min_length=1, max_length=MOST_HEADS)]
Part = Annotated[str, Field(min_length=1, max_length=40, pattern=r"^[a-z0-9_.]+$")]
Piece = Annotated[str, Field(min_length=1, max_length=200, pattern=NO_ZERO)]
Share = Annotated[float, Field(ge=0, le=1)]
Pattern = Annotated[str, Field(max_length=20, pattern=f"^({PATTERN})$")]


class PinAsked(StrictRequest):
    step: Number = Field(description="The row: which target piece, counted from 0.")
    source: Number = Field(description="The column: which source piece.")
    layers: Literal["*"] | Layers = Field(default="*", description="Of the decoder; * for all.")
    strength: Share = Field(default=1.0, description="1: it looks nowhere else.")


class Interventions(StrictRequest):
    # What pydantic says of the keys allows others beside them, which it refuses.
    gates: Annotated[dict[Pattern, Share], Field(max_length=MOST_GATES, json_schema_extra={"additionalProperties": False})] = Field(
        default={}, description='Dimmers, by head or pattern: {"cross.5.2": 0, "enc.0.*": 0.4}. Later ones win.'
    )
    gate_mode: Literal["zero", "mean"] = Field(default="zero", description="What a dimmed head gives instead.")
    mask_source: Annotated[list[Number], Field(max_length=4096)] = Field(
        default=[], description="Source pieces, counted from 0, that nobody looks at."
    )
    pin: Annotated[list[PinAsked], Field(max_length=MOST_PINS)] = Field(
        default=[], description="Steps at which the cross-attention looks at a given source piece."
    )
    positions: Annotated[str, Field(max_length=30, pattern=f"^({POSITIONS})$")] = Field(
        default="normal", description="normal, zero, shuffle:SEED or shift:K."
    )
    attn_temperature: float = Field(default=1.0, ge=0.01, le=100, description="Below 1 sharpens, above 1 flattens.")

    def changes(self) -> Changes:
        """Problems between the fields, such as a piece that is hidden and looked at, are found here."""
        try:
            return changes_from_json(self.model_dump(exclude_unset=True))
        except ConfigError as error:
            raise BadRequest("interventions: " + "; ".join(error.problems)) from None


class TraceRequest(StrictRequest):
    source: str = Field(description="The text: one sentence.")
    model: Name | None = Field(default=None, description=f'{DIRECTED} "default": the first too.')
    tags: Tags = Field(default=[], description="What the model is told beside the languages, as formal. They are pieces of the source.")
    target: str | None = Field(default=None, description="A translation to look at. null: what the model finds.")
    prefix: list[Number | Piece] = Field(
        default=[], description="What the translation begins with: pieces, as ids or as the vocabulary spells them."
    )
    beam: int | None = Field(default=None, description="Hypotheses kept while searching. null: the model's own.")
    length_penalty: float | None = Field(default=None, ge=0, le=10, description="Above 0 favours longer translations.")
    max_len: int | None = Field(default=None, description="Most pieces of the translation, the end included.")
    nbest: int = Field(default=4, description="Translations told, the best one included; at most the beam.")
    topk: Annotated[int, Field(ge=1, le=MOST_TOPK), BeforeValidator(whole)] = Field(
        default=8, description="Most probable pieces told for each place."
    )
    include: Annotated[list[Part], Field(max_length=MOST_PARTS)] = Field(
        default=list(PARTS), description=f"{', '.join(PARTS)}; pos, qkv, scores, ffn, resid, logits; stages by name."
    )
    layers: Layers | None = Field(default=None, description="Only these, counted from 0. null: all.")
    heads: Heads | None = Field(default=None, description="Only these, counted from 0. null: all.")
    encoding: Encoding = Field(default="u8", description="Of arrays, in base64: bytes, halves, floats; or a list.")
    interventions: Interventions | None = Field(default=None, description="What is changed in the model.")

    @property
    def changes(self) -> Changes:
        return Changes() if self.interventions is None else self.interventions.changes()

    @property
    def characters(self) -> int:
        return len(self.source) + len(self.target or "")

    def search(self, own: SearchSettings) -> SearchSettings:
        """The model's own search, but for what was asked for. One that draws would show another sentence than it translates."""
        beam = self.beam or max(own.beam, self.nbest if "nbest" in self.model_fields_set else 1)
        most = own.max_length if self.max_len is None else self.max_len
        wanted: dict[str, Any] = {"sampling": None, "mbr_samples": None, "groups": 1, "nbest": 1, "beam": beam}
        wanted |= {"max_length": most, "min_length": min(own.min_length, most - 1)}
        if self.length_penalty is not None:
            wanted["length_penalty"] = self.length_penalty
        return own.changed(**wanted)


class ImportanceRequest(StrictRequest):
    model: Name | None = Field(default=None, description=f'{DIRECTED} "default": the first too.')
    tags: Tags = Field(default=[], description="What the model is told beside the languages, as formal. They are pieces of the source.")
    sentences: list[str] | None = Field(default=None, description="Texts, each one sentence. The model translates them.")
    set: Literal["valid"] | None = Field(
        default=None,
        description="Instead of sentences: pairs that the model was validated with, where it lies in its run.",
    )
    n: int = Field(default=64, description="Pairs of the set.")
    mode: Literal["mute"] = Field(default="mute", description="Each head in turn is turned off.")


class ExportRequest(StrictRequest):
    trace_id: Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9_-]+$")]
    format: Format = Field(description="html: the desk, in one file; svg and png: a picture; json and npz: the numbers.")
    view: Annotated[str, Field(max_length=8_000, pattern=NO_ZERO)] | None = Field(
        default=None, description="What the html file shows first, as it stands in the address of the page."
    )


class WhyRequest(StrictRequest):
    trace_id: Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9_-]+$")]
    piece: Number = Field(description="Which piece of the translation, counted from 0.")
    method: Method = Field(default="occlusion", description="How to find out.")
    instead_of: Piece | None = Field(default=None, description="Why it and not this word, or piece, at the same place.")
    check: bool = Field(default=False, description="Name also the words of the sentence that were left out and made up.")


@dataclass(frozen=True)
class DeskRequests:
    trace: type[TraceRequest]
    why: type[WhyRequest]
    importance: type[ImportanceRequest]
    export: type[ExportRequest]


def desk_requests(settings: ServeSettings) -> DeskRequests:
    """The same classes with the limits of this server in them."""
    limits, desk = settings.limits, settings.desk
    text = Annotated[str, Field(min_length=1, max_length=limits.characters, pattern=NO_ZERO)]
    widest = min(limits.alternatives + 1, limits.beam)
    traced: dict[str, Any] = {
        "source": text,
        "target": text | None,
        "prefix": Annotated[list[Number | Piece], Field(max_length=desk.pieces)],
        "beam": Annotated[int, Field(ge=1, le=limits.beam), BeforeValidator(whole)] | None,
        "max_len": Annotated[int, Field(ge=1, le=desk.pieces), BeforeValidator(whole)] | None,
        "nbest": Annotated[int, Field(ge=1, le=widest), BeforeValidator(whole)],
    }
    ranked: dict[str, Any] = {
        "sentences": Annotated[list[text], Field(min_length=1, max_length=desk.sentences)] | None,
        "n": Annotated[int, Field(ge=1, le=desk.sentences), BeforeValidator(whole)],
    }
    return DeskRequests(with_limits(TraceRequest, traced), WhyRequest, with_limits(ImportanceRequest, ranked), ExportRequest)
