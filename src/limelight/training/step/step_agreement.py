"""An agreement on each step takes one small message after the gradients, so that all processes decide alike."""

from collections.abc import Sequence
from dataclasses import dataclass

from limelight.corpus.feeding.batches import PairBatch
from limelight.planning.cost.parallel import Parallel
from limelight.training.processes.stop_signals import Reason
from limelight.training.processes.world import World
from limelight.training.step.gradients import Losses


@dataclass(frozen=True)
class StepAgreement:
    """An agreement sums up what all processes found in a step."""

    loss: float  # per target piece
    nll: float
    norm: float
    sources: int  # pieces
    cells: int
    stop: Reason | None
    save: bool  # the main process's clock says so
    written: bool  # everyone has written its part of the checkpoint


@dataclass(frozen=True)
class RankFlags:
    """The flags are what one process has to tell beside its gradients."""

    stop: Reason | None = None  # it got a signal
    save: bool = False  # its clock says so
    written: bool = False  # its part of the checkpoint is on disk


def agree_on_step(
    world: World, parallel: Parallel, losses: Losses, norm: float, shares: Sequence[PairBatch], said: RankFlags
) -> StepAgreement:
    """A gradient that went wrong in one process only is seen by all: the norm is the mean of what each of them measured."""
    sources, cells = sum(share.sources for share in shares), sum(share.cells for share in shares)
    if world.size == 1:
        return StepAgreement(losses.loss, losses.nll, norm, sources, cells, said.stop, said.save, said.written)
    signals = [said.stop == "interrupted", said.stop == "preempted"]
    total, nll, all_sources, all_cells, norms, interrupted, preempted, due, ready = world.all_reduce(
        [losses.total, losses.total_nll, sources, cells, norm, *signals, world.main and said.save, said.written]
    )
    seen = parallel.tensor * losses.pieces  # processes that share products count the same pieces
    return StepAgreement(
        loss=total / seen,
        nll=nll / seen,
        norm=norms / world.size,
        sources=round(all_sources / parallel.tensor),
        cells=round(all_cells / parallel.tensor),
        stop="interrupted" if interrupted else "preempted" if preempted else None,
        save=due > 0,
        written=ready == world.size,
    )
