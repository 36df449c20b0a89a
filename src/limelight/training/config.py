"""A recipe holds every setting that decides a run. `limelight train` writes a complete one, and takes one in place of corpora."""

from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from limelight.bundle import BundleTags
from limelight.config import Settings, SparseSettings
from limelight.corpus.config import PrepareSettings
from limelight.corpus.feeding.batches import BatchSettings
from limelight.decoding.config import SearchSettings
from limelight.errors import ConfigError
from limelight.model.config import ModelConfig

Precision = Literal["masters", "autocast", "float32"]
Metric = Literal["chrf", "bleu"]
ParallelKind = Literal["ddp", "fsdp", "hybrid", "tensor"]
OF_THE_WORLD = {"parallel", "shard", "tensor", "patience", "recompute"}  # of `machine`: may change when a run goes on
DECIDES = {"model", "batch", "accumulate", "label_smoothing", "r_drop", "guided_alignment", "optimizer", "seed"}


class OptimizerSettings(Settings):
    """AdamW takes the steps (Loshchilov and Hutter 2019); with `muon`, Muon does for matrices inside the blocks (Jordan et al. 2024)."""

    name: Literal["adamw", "muon"] = "adamw"
    learning_rate: float = Field(default=2e-3, gt=0, le=1, description="At the peak of the schedule.")
    beta1: float = Field(default=0.9, ge=0, lt=1)
    beta2: float = Field(default=0.98, ge=0, lt=1, description="0.98 is the paper's.")
    epsilon: float = Field(default=1e-9, gt=0)
    momentum: float = Field(default=0.95, ge=0, lt=1, description="Of Muon.")
    weight_decay: float = Field(default=0.01, ge=0, lt=1, description="Of matrices; not of biases and norms.")
    clip: float | None = Field(default=None, gt=0, description="Longest gradient; a longer one is shortened to it. Absent: none is.")


class ScheduleSettings(SparseSettings):
    """The schedule gives the learning rate over the steps, as a part of its peak. See `limelight.training.step.learning_rate`."""

    rare: ClassVar = {"batch_growth", "both_directions"}
    name: Literal["inverse_sqrt", "cosine", "stable_decay"] = Field(
        default="stable_decay", description="inverse_sqrt is the paper's (5.3)."
    )
    steps: int = Field(default=10_000, ge=1)
    fixed: bool = Field(default=False, description="The steps were asked for: a budget may only make them fewer.")
    warmup: int = Field(default=400, ge=0, description="Steps in which the rate rises from zero.")
    decay: float = Field(default=1.0, gt=0, le=1, description="stable_decay: the last part of the steps, in which it falls.")
    floor: float = Field(default=0.01, ge=0, le=1, description="Where it ends, as a part of the peak.")
    batch_growth: float = Field(
        default=1.0, ge=1, le=64, description="Times the batches of a step, at the end; they grow from the middle on."
    )
    both_directions: float = Field(
        default=0.0, ge=0, lt=1, description="First part of the steps, in which pairs come both ways round, untagged (Ding et al. 2021)."
    )


class AverageSettings(SparseSettings):
    """Weights averaged over time are better than the last (Polyak and Juditsky 1992)."""

    rare: ClassVar = {"latest"}
    decay: float | None = Field(default=None, gt=0, lt=1, description="Moving average of the weights. Absent: without.")
    best: int = Field(default=3, ge=1, le=20, description="The best kept weights, whose mean is tried at the end.")
    latest: bool = Field(default=False, description="The latest validated weights are kept in place of the best, as fairseq averages.")


class ValidationSettings(SparseSettings):
    """Validation translates, since a loss does not tell what a person reads."""

    rare: ClassVar = {"search"}
    every: int = Field(default=500, ge=1, description="Steps.")
    metric: Metric = Field(default="chrf", description="Which score decides what is best.")
    sentences: int = Field(default=500, ge=1, description="At most so many of the validation set.")
    beam: int = Field(default=1, ge=1, le=64)
    patience: int | None = Field(default=None, ge=1, description="Validations without a better score, after which the run ends.")
    samples: int = Field(default=5, ge=0, le=100, description="Sentences to watch while it learns.")
    search: bool = Field(default=False, description="At the end, the length penalty is chosen by the validation set too.")


class ProbeSettings(Settings):
    """The same few sentences are traced at every validation, to show how attention came about. It changes nothing of what is learned."""

    sentences: int = Field(default=6, ge=0, le=8, description="Of the validation set. 0: none are traced.")
    file: str | None = Field(default=None, description="Text with a sentence in each line, in place of these.")
    longest: int = Field(default=32, ge=1, le=256, description="Most pieces of a sentence, and of its translation.")
    steps: int = Field(default=24, ge=2, le=1000, description="Validations that are kept, thinned out evenly.")
    megabytes: float = Field(default=64.0, gt=0, description="Most of the disk; beyond it, fewer validations are kept.")


class CheckpointSettings(SparseSettings):
    rare: ClassVar = {"background"}
    every_seconds: float = Field(default=300.0, gt=0)
    keep: int = Field(default=2, ge=1, le=100)
    background: bool = Field(default=False, description="Written while the next steps are taken, from a copy in memory.")


class DivergenceSettings(Settings):
    """Steps that would do harm are left out: no numbers, or a loss out of all proportion."""

    window: int = Field(default=128, ge=8, description="Steps whose loss and gradient say what is usual.")
    sigmas: float = Field(default=6.0, gt=0, description="Above the usual, in standard deviations.")
    in_a_row: int = Field(default=10, ge=1, description="Bad steps after which the run ends.")


class MachineSettings(SparseSettings):
    """These settings say where and how a run computes. None: chosen when it starts."""

    rare: ClassVar = OF_THE_WORLD
    device: str | None = None
    precision: Precision | None = Field(default=None, description="masters: bfloat16 weights with float32 masters; autocast; float32.")
    threads: int | None = Field(default=None, ge=1)
    compile: bool = Field(default=False, description="torch.compile of each layer; on a CPU it does not pay.")
    workers: int | None = Field(default=None, ge=0, le=64, description="Processes that make batches ahead.")
    recompute: bool = Field(
        default=False,
        description="Blocks are computed again for the backward pass: a third more time, much less memory.",
    )
    parallel: ParallelKind | None = Field(
        default=None, description="How several processes share the model; chosen by its size. See docs/scale.md."
    )
    shard: int | None = Field(default=None, ge=1, description="hybrid: processes that hold the weights together.")
    tensor: int | None = Field(default=None, ge=1, description="tensor: processes that share each product.")
    patience: float = Field(
        default=100.0,
        gt=0,
        description="Seconds that a process may be silent; until the first step, three times as long.",
    )


class Inherited(Settings):
    """A new translator inherits this from the old one, beside its weights, pieces and special ids."""

    search: SearchSettings = SearchSettings()
    alignment: tuple[tuple[int, int], ...] | None = None
    license: str | None = Field(default=None, description="Of the model that others trained: it holds for what is made of it.")
    tags: BundleTags | None = Field(default=None, description="What the old translator can be told, and its directions.")

    def join_tags(self, directions: tuple[tuple[str, str], ...]) -> BundleTags | None:
        """What the new translator can be told: all that the old one could, with the directions of the new text first."""
        old = self.tags
        if old is None or not old.directions:
            return old
        others = tuple(pair for pair in old.directions if pair not in directions)
        return old.changed(directions=(*dict.fromkeys(directions), *others), inherited=others)


class FineTuning(SparseSettings):
    """Fine-tuning goes on from a finished translator, with its pieces and its shape; of a parent, with its shape alone."""

    rare: ClassVar = {"inherits", "parent"}
    bundle: str
    replay: float = Field(default=0.5, ge=0, lt=1, description="Share of the old text among what is seen.")
    inherits: Inherited | None = Field(default=None, description="Absent: nothing that is not usual.")
    parent: str | None = Field(default=None, description="What a parent translates: pieces are learnt anew. Absent: the old ones are kept.")

    @property
    def keeps_search(self) -> bool:
        """Whether the old translator brought a search along that is not the usual one; a parent's target has another length."""
        return self.parent is None and self.inherits is not None and self.inherits.search != SearchSettings()


class Recipe(SparseSettings):
    """A recipe decides the whole of a run."""

    rare: ClassVar = {"teacher", "guided_alignment"}
    data: PrepareSettings
    model: ModelConfig
    batch: BatchSettings = BatchSettings()
    accumulate: int = Field(default=1, ge=1, le=10_000, description="Batches to a step.")
    label_smoothing: float = Field(default=0.1, ge=0, lt=1)
    r_drop: float | None = Field(default=None, gt=0, strict=True, description="Weight of R-Drop (Liang et al. 2021), two passes a step.")
    guided_alignment: float | None = Field(
        default=None, gt=0, le=10, strict=True, description="Weight of a head that learns to align words (Garg et al. 2019); 0.05 is usual."
    )
    optimizer: OptimizerSettings = OptimizerSettings()
    schedule: ScheduleSettings = ScheduleSettings()
    average: AverageSettings = AverageSettings()
    validation: ValidationSettings = ValidationSettings()
    probes: ProbeSettings = ProbeSettings()
    checkpoints: CheckpointSettings = CheckpointSettings()
    trouble: DivergenceSettings = DivergenceSettings()
    machine: MachineSettings = MachineSettings()
    fine_tuning: FineTuning | None = None
    teacher: str | None = Field(
        default=None, pattern=r"^[^\x00-\x1f`]+$", max_length=300, description="Whose translations it learns from, if no person's."
    )
    budget_seconds: float | None = Field(default=None, gt=0, description="For all of it; None: as long as the steps take.")
    seed: int = Field(default=1, ge=0, lt=2**63)

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        problems = []
        if self.schedule.warmup >= self.schedule.steps and self.schedule.steps > 1:
            problems.append(
                f"schedule.warmup={self.schedule.warmup} leaves nothing of schedule.steps={self.schedule.steps}; "
                f"try warmup={self.schedule.steps // 10}"
            )
        growth = self.schedule.batch_growth
        if growth > 1 and round(growth * self.accumulate) == self.accumulate:
            problems.append(f"schedule.batch_growth={growth:g} adds no whole batch to accumulate={self.accumulate}; try 2")
        if self.guided_alignment is not None:
            if self.schedule.both_directions:
                problems.append("guided_alignment knows one direction, schedule.both_directions has two; take one of them")
            if self.machine.compile:
                problems.append("guided_alignment watches a head, which machine.compile=true does not allow; take one of them")
            if self.machine.recompute:
                problems.append("guided_alignment watches a head, which machine.recompute=true computes again unseen; take one of them")
        if self.batch.longest is not None and self.batch.longest + 1 > self.model.max_length:
            problems.append(f"batch.longest={self.batch.longest} and its end are more than model.max_length={self.model.max_length}")
        return self.refuse(problems)


def decisive(recipe: Recipe) -> dict[str, Any]:
    """The sections that a run does not go on without, for its checkpoints."""
    return recipe.model_dump(mode="json", include=DECIDES)


def refuse_changed(recipe: Recipe, before: dict[str, Any], folder: Path) -> None:
    now = decisive(recipe)
    differ = sorted(key for key in DECIDES if now.get(key) != before.get(key))
    if differ:
        raise ConfigError(
            f"{folder} cannot go on: its recipe was changed in {', '.join(differ)}; train with other settings in a folder of "
            "their own: limelight train recipe.toml -o another"
        )
