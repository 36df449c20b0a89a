"""config.json: what is needed to translate beside pieces and weights, and the scores that the translator was accepted with."""

from importlib.metadata import version
from typing import Annotated, Self

from pydantic import Field, model_validator

from limelight.bundle.layout import FORMAT
from limelight.config import Settings
from limelight.decoding.config import SearchSettings
from limelight.model.config import ModelConfig
from limelight.text.normalize import DEFAULT_STEPS, Step

Language = Annotated[str, Field(pattern=r"^[A-Za-z]{2,8}([-_][A-Za-z0-9]{1,8})*$")]
Line = Annotated[str, Field(pattern=r"^[^\x00-\x1f`]+$", max_length=500)]  # can stand in the card


class Score(Settings):
    """Score(test_set="newstest2014", metric="BLEU", value=27.3, signature="nrefs:1|case:mixed|...", lines=3003)"""

    test_set: Line
    metric: Line
    value: float
    signature: Line
    lines: int = Field(ge=1)


class BundleSettings(Settings):
    """BundleSettings(languages=("en", "de"), model=ModelConfig(vocab_size=8_000))"""

    format: int = FORMAT
    made_by: Line = Field(default_factory=lambda: f"limelight {version('limelight')}")
    languages: tuple[Language, Language] = Field(description="Source and target.")
    model: ModelConfig
    normalization: tuple[Step, ...] = Field(default=DEFAULT_STEPS, description="What the training text went through.")
    search: SearchSettings = Field(default=SearchSettings(), description="Used unless a translation asks for another.")
    alignment: tuple[tuple[int, int], ...] | None = Field(
        default=None, description="Layer and head, counted from 0, of the cross-attentions that align best."
    )
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
        if problems:
            raise ValueError("\n".join(problems))
        return self
