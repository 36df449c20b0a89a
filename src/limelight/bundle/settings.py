"""config.json holds what is needed to translate beside pieces and weights, and the scores of the translator."""

import json
from collections.abc import Collection
from importlib.metadata import version
from typing import Annotated, ClassVar, Self

from pydantic import Field, NonNegativeInt, model_validator

from limelight.bundle.confidence import Calibration
from limelight.bundle.layout import FORMAT
from limelight.bundle.tags import BundleTags, Direction, Language, find_language
from limelight.config import Settings, SparseSettings
from limelight.decoding.config import SearchSettings
from limelight.errors import ConfigError
from limelight.model.config import ModelConfig
from limelight.text.normalize import DEFAULT_STEPS, Step

Line = Annotated[str, Field(pattern=r"^[^\x00-\x1f`]+$", max_length=500)]  # can stand in the card


class Score(Settings):
    """A score is Score(test_set="newstest2014", metric="BLEU", value=27.3, signature="nrefs:1|case:mixed|...", lines=3003)"""

    test_set: Line
    metric: Line
    value: float
    signature: Line
    lines: int = Field(ge=1)


class Learnt(SparseSettings):
    """Learnt says what the model was taught beside translating; a translator asks nothing else of it."""

    rare: ClassVar = {"matches", "tags"}  # older versions read a bundle that was not taught them
    marks: int = Field(default=0, ge=0, le=256, description="Reserved pieces that it copies, as ⟦0⟧; 0: none.")
    terms: bool = Field(default=False, description="May a source be followed by words that its translation should use?")
    matches: bool = Field(default=False, description="May a source be followed by the translation of a similar one?")
    longest: int | None = Field(default=None, ge=1, description="Pieces of the longest sources that it was taught.")
    tags: bool | None = Field(default=None, description="Did its text have tags enough to learn where they go? None: it was not counted.")


class BundleSettings(Settings):
    """Bundle settings are BundleSettings(languages=("en", "de"), model=ModelConfig(vocab_size=8_000))"""

    format: int = FORMAT
    made_by: Line = Field(default_factory=lambda: f"limelight {version('limelight')}")
    languages: tuple[Language, Language] = Field(description="Source and target; of a model that has several directions, the usual ones.")
    model: ModelConfig
    normalization: tuple[Step, ...] = Field(default=DEFAULT_STEPS, description="What the training text went through.")
    search: SearchSettings = Field(default=SearchSettings(), description="Used unless a translation asks for another.")
    source_begin: tuple[NonNegativeInt, ...] = Field(
        default=(),
        max_length=100,
        description="Ids before the pieces of every source: a language, of a model that has many.",
    )
    source_ends: bool = Field(default=True, description="Does every source carry the end piece?")
    target_begin: tuple[NonNegativeInt, ...] = Field(
        default=(), max_length=100, description="Ids that every translation begins with, and that are not shown."
    )
    tags: BundleTags | None = Field(default=None, description="Of a model that is told its languages, or more. None: it is told nothing.")
    alignment: tuple[tuple[int, int], ...] | None = Field(
        default=None, description="Layer and head, counted from 0, of the cross-attentions that align best."
    )
    learnt: Learnt | None = Field(default=None, description="Beside translating. None: nothing is known of it.")
    confidence: Calibration | None = Field(default=None, description="What is true of what the model claims. None: it was not measured.")
    scores: tuple[Score, ...] = ()
    trained_on: dict[Line, Line | int | float] | None = Field(default=None, description="A few facts for people.")

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        layers, heads, size = self.model.decoder_layers, self.model.num_heads, self.model.vocab_size
        problems = [
            f"alignment names layer {layer}, head {head}, but the decoder has {layers} layers of {heads} heads"
            for layer, head in self.alignment or ()
            if not (0 <= layer < layers and 0 <= head < heads)
        ]
        outside = [i for i in self.search.suppress if not 0 <= i < size]
        if outside:
            problems.append(f"search.suppress has id {outside[0]}, but the model has ids 0 to {size - 1}")
        for name, known in (("source_begin", self.model.source_vocab), ("target_begin", size)):
            beyond = [i for i in getattr(self, name) if i >= known]
            if beyond:
                problems.append(f"{name} has id {beyond[0]}, but the model has ids 0 to {known - 1}")
        reserved = {self.model.pad_token, self.model.start_token, self.model.end_token}
        if reserved & set(self.target_begin):
            problems.append("target_begin has the padding, the start or the end, which no translation can begin with")
        if max(len(self.source_begin), len(self.target_begin)) >= self.model.max_length - 1:
            problems.append("source_begin or target_begin fills all positions of the model")
        if self.tags is not None:
            problems += self.tags.list_problems(self.languages, (self.model.source_vocab, size), reserved, self.model.max_length - 1)
            if not problems and (said := (self.source_begin, self.target_begin)) not in (((), ()), self.tags.begin(self.languages)):
                problems.append(f"source_begin and target_begin are {said}, but tags say {self.tags.begin(self.languages)}; leave them out")
        return self.refuse(problems)

    @property
    def directions(self) -> list[Direction]:
        """All that the model was taught, the usual one first."""
        return [self.languages] if self.tags is None else self.tags.list_directions(self.languages)

    @property
    def is_trained(self) -> bool:
        """Was the model taught to translate between its `languages`, or only each of them with others?"""
        return self.tags is None or not self.tags.directions or self.languages in self.tags.directions

    @property
    def takes_matches(self) -> bool:
        """Was the model taught to be told translations of similar texts?"""
        return self.learnt is not None and self.learnt.matches

    def aim(self, target: str | None = None, source: str | None = None, names: Collection[str] = ()) -> Self:
        """The settings of one direction, told these names: `languages`, `source_begin` and `target_begin` are its own.

        What is not said is as near to the usual direction as can be. A ConfigError lists what there is.
        """
        if self.tags is not None:
            direction = self.tags.choose(self.languages, target, source)
            before, begin = self.tags.begin(direction, names)
            return self.model_copy(update={"languages": direction, "source_begin": before, "target_begin": begin})
        problems = [f"{', '.join(map(repr, names))}: it was taught no tag"] if names else []
        for asked, own, what in ((source, self.languages[0], "source"), (target, self.languages[1], "target")):
            try:
                find_language(own if asked is None else asked, [own])
            except ConfigError as error:
                problems.append(f"{what}: {error}")
        if problems:
            raise ConfigError(f"the model translates from {self.languages[0]} to {self.languages[1]} and nothing else:", problems)
        return self

    def encode(self) -> bytes:
        """config.json as it is written."""
        unused = {name for name in ("source_begin", "target_begin") if not getattr(self, name)}
        unused |= {"source_ends"} if self.source_ends else set()
        unused |= {name for name in ("learnt", "confidence", "tags") if getattr(self, name) is None}
        dumped = self.model_dump(mode="json", exclude=unused)
        if self.confidence is not None and self.confidence.unedited is None:
            del dumped["confidence"]["unedited"]  # as bundles had it before, which older versions read
        return (json.dumps(dumped, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()
