"""A step is timed on machines that are only described. Arithmetic goes at a fraction of the peak, bytes at the speed of the wires between
those who exchange them, and each hop has a delay.

Nothing here was measured on such machines (`planning.time.devices`): peak and wires are their makers' figures, `achieved` is an assumption
and the first thing to measure on a real one.
"""

import math
from dataclasses import dataclass

from limelight.model.config import ModelConfig
from limelight.planning.cost.communication import Traffic, communication
from limelight.planning.cost.compute import flops
from limelight.planning.cost.parallel import Parallel, Precision
from limelight.planning.cost.shape import BatchShape
from limelight.planning.time.devices import Device


@dataclass(frozen=True)
class StepTime:
    """A step takes these seconds. `hidden` goes on beside the arithmetic, as far as there is enough of it; `exposed` stands in its way."""

    computing: float
    hidden: float
    exposed: float

    @property
    def best(self) -> float:
        return max(self.computing, self.hidden) + self.exposed

    @property
    def worst(self) -> float:
        return self.computing + self.hidden + self.exposed

    @property
    def efficiency(self) -> tuple[float, float]:
        return self.computing / self.worst, self.computing / self.best


def step_time(
    config: ModelConfig,
    parallel: Parallel,
    precision: Precision,
    shape: BatchShape,
    device: Device,
    recompute: bool = False,
) -> StepTime:
    """`shape`: of one process's batch; processes that share products share the batch too."""
    work = flops(config, shape).of_rank(parallel.tensor).step(recompute, fused=True)
    traffic = communication(config, parallel, precision, shape, recompute=recompute).traffic
    # Sums of a product are needed at once. Weights are gathered ahead, and gradients leave while earlier layers are computed.
    at_once = [each for each in traffic if each.purpose.startswith(("sums", "words"))]
    ahead = [each for each in traffic if each not in at_once]
    return StepTime(
        computing=work / device.rate(precision),
        hidden=sum(seconds(each, parallel, device) for each in ahead),
        exposed=sum(seconds(each, parallel, device) for each in at_once),
    )


def seconds(traffic: Traffic, parallel: Parallel, device: Device) -> float:
    """bytes / speed + calls x hops x delay.

    A ring that passes through k devices of each machine leaves it by the wires of k adapters; all-reduce goes up and down a tree, the
    others once around a ring. Ranks count up inside a machine: tensor first, then shards, then replicas.
    """
    here = _on_a_host(traffic, parallel, device)
    across = traffic.among > here
    speed = min(device.inside, here * device.between) if across else device.inside
    hosts = math.ceil(traffic.among / here)
    if traffic.collective == "all_reduce":
        hops_between, hops_inside = 2 * math.ceil(math.log2(hosts)), 2 * math.ceil(math.log2(here))
    else:
        hops_between, hops_inside = (hosts if across else 0), traffic.among - 1
    delay = hops_between * device.hop_between + hops_inside * device.hop_inside
    return traffic.sent / (speed * device.wires) + traffic.calls * delay


def _on_a_host(traffic: Traffic, parallel: Parallel, device: Device) -> int:
    """How many of those who exchange this stand in one machine."""
    if traffic.purpose.startswith("words") or traffic.purpose.startswith("sums"):
        apart = 1
    elif traffic.purpose.endswith("between groups"):
        apart = parallel.tensor * parallel.shards
    else:
        apart = parallel.tensor
    return max(1, min(traffic.among, device.per_host // apart))
