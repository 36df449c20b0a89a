"""Search settings are every number and choice that decides which translation is found for given probabilities."""

import math
from typing import Any, Literal, Self

from pydantic import Field, NonNegativeInt, model_validator

from limelight.config import Settings


class Sampling(Settings):
    """Draw instead of maximizing. The scores of what was drawn are the model's own, whatever the temperature."""

    temperature: float = Field(default=1.0, gt=0, le=100, description="Below 1 sharpens, above 1 flattens.")
    top_k: int | None = Field(default=None, ge=1, le=10_000_000, description="Only the k most probable pieces.")
    top_p: float | None = Field(
        default=None, gt=0, le=1, description="Only the fewest pieces that together have probability p (Holtzman 2020)."
    )
    seed: int = Field(default=0, ge=0, lt=2**63, description="The same seed draws the same, in any batch.")


class SearchSettings(Settings):
    """SearchSettings() is the paper's search: beam 4, length penalty 0.6 (section 6.1). A beam of 1 is greedy."""

    beam: int = Field(default=4, ge=1, le=4096, description="Hypotheses kept for each sentence.")
    nbest: int = Field(default=1, ge=1, le=4096, description="Translations wanted of each sentence; at most the beam.")
    length_penalty: float = Field(
        default=0.6, ge=0, le=10, description="The exponent by which a score is divided; 0 prefers short sentences."
    )
    length_norm: Literal["gnmt", "power"] = Field(default="gnmt", description="gnmt: ((5 + n) / 6)^penalty, the paper's. power: n^penalty.")
    coverage_penalty: float = Field(
        default=0.0,
        ge=0,
        le=10,
        description="Against source pieces that no target piece looked at (Wu et al. 2016, eq. 14).",
    )

    patience: float | None = Field(
        default=1.0,
        ge=1,
        le=100,
        description="A plain beam ends when beam * patience hypotheses have ended, each replaced by the next best. "
        "None: an ended one keeps its place, and the beam ends when nothing can come among the best.",
    )

    min_length: int = Field(default=0, ge=0, le=10_000, description="Fewest pieces before the end.")
    max_length: int = Field(default=256, ge=1, le=10_000, description="Most pieces, the end included.")
    max_ratio: float = Field(default=3.0, ge=0, le=100, description="With max_extra: most pieces for a source of n.")
    max_extra: int = Field(default=20, ge=1, le=10_000, description="At most max_ratio * n + max_extra pieces.")

    no_repeat_ngram: int | None = Field(default=None, ge=1, le=100, description="No sequence of so many pieces occurs twice.")
    suppress: tuple[NonNegativeInt, ...] = Field(default=(), max_length=100_000, description="Pieces, by id, that never occur.")
    allow_unknown: bool = Field(default=False, description="May the unknown piece be an answer?")

    groups: int = Field(default=1, ge=1, le=256, description="Diverse beam search: groups that avoid each other.")
    diversity: float = Field(default=0.5, ge=0, le=100, description="What a piece costs that an earlier group took.")

    sampling: Sampling | None = Field(default=None, description="Draw `nbest` translations instead of searching.")
    mbr_samples: int | None = Field(default=None, ge=2, le=1024, description="Draw so many and take the one most like the others (chrF).")

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        problems = []
        if self.sampling is None and self.nbest > self.beam:
            problems.append(f"nbest={self.nbest} translations cannot come out of a beam of {self.beam}; try beam={self.nbest}")
        if self.min_length >= self.max_length:
            problems.append(f"min_length={self.min_length} leaves no room below max_length={self.max_length}; raise the second")
        if self.beam % self.groups:
            fits = self.groups * max(1, round(self.beam / self.groups))
            problems.append(f"beam={self.beam} does not split into groups={self.groups} equal groups; try beam={fits}")
        if self.sampling is not None and self.coverage_penalty:
            problems.append("coverage_penalty is for a beam, and sampling draws; leave out one of them")
        if self.mbr_samples is not None and self.sampling is None:
            problems.append("mbr_samples draws, and needs to know how: give sampling too, such as sampling.top_p=0.9")
        return self.refuse(problems)

    def fitted(self, **values: Any) -> Self:
        """As `changed`, where what is asked for wins: a beam that is not named grows to the n-best and to a multiple of the groups, and
        an n-best and groups that are not named shrink to the beam. nbest=6 of beam=4, groups=4 -> beam=8, nbest=6, groups=4."""
        beam, nbest, groups = (values.get(key, getattr(self, key)) for key in ("beam", "nbest", "groups"))
        beam = beam if "beam" in values else max(beam, nbest)
        groups = groups if "groups" in values else min(groups, beam)
        beam = groups * math.ceil(beam / groups)
        return self.changed(**values | {"beam": beam, "nbest": nbest if "nbest" in values else min(nbest, beam), "groups": groups})

    def limit(self, source_pieces: int) -> int:
        """Most pieces of a translation, its end included: min(256, 3 n + 20) by default, and never too few for the fewest asked for."""
        return max(self.min_length + 1, min(self.max_length, int(self.max_ratio * source_pieces) + self.max_extra))
