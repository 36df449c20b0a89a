"""`EvaluateSettings` holds all that decides a score, so that two scores with equal settings can be compared."""

from dataclasses import dataclass
from typing import Literal, Self

from pydantic import Field, model_validator

from limelight.config import Settings

MetricName = Literal["bleu", "chrf", "chrf++", "ter"]
TokenizerName = Literal["13a", "intl", "char", "none", "zh", "ja-mecab", "ko-mecab"]


@dataclass(frozen=True)
class InferenceOptions:
    """The options say how a translator makes what is scored. None: as its bundle says, or as this machine allows."""

    beam: int | None = None
    batch_pieces: int | None = None
    device: str | None = None
    dtype: str | None = None
    threads: int | None = None
    target: str | None = None  # languages and tags of a translator that has several
    source: str | None = None
    tags: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Speed:
    sentences: int
    seconds: float
    source_pieces: int
    target_pieces: int

    @property
    def sentences_per_second(self) -> float:
        return self.sentences / max(self.seconds, 1e-9)

    @property
    def pieces_per_second(self) -> float:
        """Source and target together."""
        return (self.source_pieces + self.target_pieces) / max(self.seconds, 1e-9)


class EvaluateSettings(Settings):
    """EvaluateSettings() measures what `sacrebleu -m bleu chrf ter --confidence` measures, with the same draws."""

    metrics: tuple[MetricName, ...] = ("bleu", "chrf", "ter")
    tokenize: TokenizerName | None = Field(default=None, description="How BLEU finds words; by target language.")
    lowercase: bool = Field(default=False, description="Upper and lower case are the same. TER never tells them apart.")
    resamples: int | None = Field(default=1_000, ge=100, le=100_000, description="Bootstrap; None: no intervals.")
    trials: int = Field(default=10_000, ge=100, le=1_000_000, description="Of the paired randomization test.")
    seed: int = Field(default=12_345, ge=0, lt=2**32, description="The same seed draws the same sentences.")
    worst: int = Field(default=5, ge=0, le=1_000, description="Sentences to show.")

    @model_validator(mode="after")
    def _each_metric_once(self) -> Self:
        if not self.metrics:
            raise ValueError("metrics: name at least one, such as bleu or chrf")
        if len(set(self.metrics)) < len(self.metrics):
            raise ValueError(f"metrics: each once; {', '.join(self.metrics)} has one twice")
        return self
