"""`limelight train --nproc N` starts N processes with the same arguments and supervises them."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import typer

from limelight.cli.train.live_state import harmless
from limelight.errors import ConfigError
from limelight.training.processes.supervisor import supervise
from limelight.training.processes.world import host_store
from limelight.training.recipe.request import TrainRequest
from limelight.training.run.rounds import refuse_sharing

SHOW_CURSOR = "\x1b[?25h"  # a live screen hides it, and one that was killed did not show it again


def launch(asked: TrainRequest, folder: Path, nproc: int, restarts: int, arguments: Sequence[str]) -> int:
    """Return the exit code of the run. The ranks get the same words, and know by their environment what they are."""
    if os.name == "nt":
        raise ConfigError(f"--nproc {nproc} needs groups of processes and signals, which Windows lacks; leave it out, or train under WSL")
    refuse_sharing(asked, nproc)
    refuse_second_launcher(nproc)
    refuse_more_than_gpus(nproc, asked.named_device)
    return supervise([sys.executable, "-m", "limelight", *arguments], nproc, folder, host_store, _say, restarts)


def refuse_second_launcher(nproc: int) -> None:
    if "WORLD_SIZE" in os.environ:
        raise ConfigError(
            f"--nproc {nproc} would start processes from one that is itself one of several (WORLD_SIZE={os.environ['WORLD_SIZE']}); "
            "leave out --nproc under torchrun or a scheduler that starts the ranks, or unset WORLD_SIZE"
        )


def refuse_more_than_gpus(nproc: int, device: str | None) -> None:
    import torch

    if device is not None and device.startswith("cuda:"):
        raise ConfigError(f"--nproc {nproc} with --device {device} would put every process on one GPU; give --device cuda")
    gpus = torch.cuda.device_count()
    if gpus and nproc > gpus and (device is None or device.startswith("cuda")):
        raise ConfigError(
            f"--nproc {nproc} is more than the {gpus} GPU{'s' * (gpus > 1)} of this machine, and each process needs one; "
            f"give --nproc {gpus}, or --device cpu"
        )


def _say(line: str) -> None:
    cursor = SHOW_CURSOR if sys.stderr.isatty() else ""
    typer.echo(cursor + harmless(line), err=True)
