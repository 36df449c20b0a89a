"""A hook for tests of real runs: faults at named points, asked for by the environment and by nothing else.

    LIMELIGHT_FAULT=point:action[=value][@step][#rank][/start][,...]

    ckpt.write:sleep=1.0            every write of a checkpoint takes a second longer
    step.loss:nan@37#1              the loss of step 37 is no number, on rank 1
    step.gradient:flip@40-49        in the gradient of each of ten steps one bit of an exponent is another; flip=0: the lowest bit
    step.forward:kill@12#1/0        rank 1 kills itself in step 12, but not again after a restart
    step.forward:term@37            a run is asked to stop, exactly in step 37
    any:stop#0                      rank 0 is frozen at the first point it comes to

Points without a value `strike`; those with one give it back `bent`:

    faults.strike("ckpt.write", step=step, rank=rank)
    loss = faults.bent("step.loss", loss, step=step, rank=rank)         a float, a tensor (in place), or several tensors by name

Without the variable neither does anything. What cannot be understood is refused, with all that is known.
"""

import errno
import math
import os
import re
import signal
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, TypeVar

import torch
from torch import Tensor

from limelight.errors import ConfigError

VARIABLE: Final = "LIMELIGHT_FAULT"
BENT: Final = ("step.weights", "step.loss", "step.gradient")  # points that have a value
POINTS: Final = ("start", "step.forward", "step.optimizer", "validate", "ckpt.write", "ckpt.commit", *BENT, "any")
FORM: Final = re.compile(
    r"(?P<point>[a-z.]+):(?P<action>[a-z]+)(=(?P<value>[-+.\w]+))?(@(?P<first>\d+)(-(?P<last>\d+))?)?(\#(?P<rank>\d+))?(/(?P<start>\d+))?"
)
# As whole numbers, and the highest bit of the exponent.
FLIPPED: Final = {
    torch.float32: (torch.int32, 30),
    torch.bfloat16: (torch.int16, 14),
    torch.float16: (torch.int16, 14),
}

Bendable = TypeVar("Bendable", float, Tensor, Mapping[str, Tensor])


@dataclass(frozen=True)
class Fault:
    point: str
    action: str
    value: float | None
    steps: tuple[int, int] | None  # first and last
    rank: int | None
    start: int | None

    def at(self, point: str, step: int, rank: int) -> bool:
        return (
            self.point in (point, "any")
            and (self.steps is None or self.steps[0] <= step <= self.steps[1])
            and self.rank in (None, rank)
            and self.start in (None, int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")))
        )


def strike(point: str, *, step: int, rank: int) -> None:
    """What the environment asks to happen here: a pause, an error, the end of the process."""
    for fault in _asked(point):
        if fault.action in STRIKES and fault.at(point, step, rank):
            STRIKES[fault.action](fault.value, f"{point} of step {step}, asked for by {VARIABLE}")


def bent(point: str, value: Bendable, *, step: int, rank: int) -> Bendable:
    """The value as the environment wants it. Of tensors, one element of the first is changed; `scale` changes all of them."""
    strike(point, step=step, rank=rank)
    for fault in _asked(point):
        if fault.action in BENDS and fault.at(point, step, rank):
            value = _bend(fault, value)
    return value


def _asked(point: str) -> tuple[Fault, ...]:
    text = os.environ.get(VARIABLE)
    if not text:
        return ()
    assert point in POINTS, point
    return faults_of(text)


@lru_cache(maxsize=4)
def faults_of(text: str) -> tuple[Fault, ...]:
    """Every part of the variable, or one error with all that is wrong in it."""
    problems: list[str] = []
    faults = [fault for part in text.split(",") if (fault := _fault_of(part.strip(), problems))]
    if problems:
        raise ConfigError(f"{VARIABLE}={text} cannot be understood", problems)
    return tuple(faults)


def _fault_of(part: str, problems: list[str]) -> Fault | None:
    found = FORM.fullmatch(part)
    if found is None:
        problems.append(f"{part!r} is not point:action[=value][@step][#rank][/start]")
        return None
    point, action, value = found["point"], found["action"], found["value"]
    known = len(problems)
    if point not in POINTS:
        problems.append(f"there is no point {point}; there are {', '.join(POINTS)}")
    if action not in STRIKES and action not in BENDS:
        problems.append(f"there is no action {action}; there are {', '.join((*STRIKES, *BENDS))}")
    elif action in BENDS and point in POINTS and point not in BENT:
        problems.append(f"{action} needs a value, and {point} has none; {', '.join(BENT)} have")
    if value is not None and not _is_number(value):
        problems.append(f"{value} is not a number, in {part!r}")
    if len(problems) > known:
        return None
    first, last = found["first"], found["last"]
    steps = (int(first), int(last or first)) if first else None
    rank, start = (int(found[name]) if found[name] else None for name in ("rank", "start"))
    return Fault(point, action, float(value) if value is not None else None, steps, rank, start)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _sleep(value: float | None, why: str) -> None:
    time.sleep(1.0 if value is None else value)


def _out_of_memory(value: float | None, why: str) -> None:
    """Once, or `value` times: a step that is tried again in smaller parts has enough then."""
    _struck[why] += 1
    if _struck[why] <= (1 if value is None else value):
        raise torch.OutOfMemoryError(f"out of memory in {why}")


def _no_space(value: float | None, why: str) -> None:
    raise OSError(errno.ENOSPC, f"{os.strerror(errno.ENOSPC)} in {why}")


def _error(value: float | None, why: str) -> None:
    raise RuntimeError(f"an error in {why}")


def _exit(value: float | None, why: str) -> None:
    os._exit(1 if value is None else int(value))


STRIKES: Final[dict[str, Callable[[float | None, str], None]]] = {
    "sleep": _sleep,
    "oom": _out_of_memory,
    "enospc": _no_space,
    "error": _error,
    "kill": lambda value, why: os.kill(os.getpid(), signal.SIGKILL),
    "stop": lambda value, why: os.kill(os.getpid(), signal.SIGSTOP),
    "term": lambda value, why: os.kill(os.getpid(), signal.SIGTERM),  # the run ends after this step, as when preempted
    "exit": _exit,
}
_struck: Counter[str] = Counter()
BENDS: Final = ("nan", "inf", "scale", "flip")


def _bend(fault: Fault, value: Bendable) -> Bendable:
    if isinstance(value, float | int):
        return _bent_number(fault, value)  # type: ignore[return-value]
    tensors = [value] if isinstance(value, Tensor) else list(value.values())
    with torch.no_grad():
        if fault.action == "scale":
            for tensor in tensors:
                _local(tensor).mul_(100.0 if fault.value is None else fault.value)
        else:
            _bend_element(fault, _local(tensors[0]))
    return value


def _bent_number(fault: Fault, value: float) -> float:
    if fault.action == "scale":
        return value * (100.0 if fault.value is None else fault.value)
    if fault.action == "flip":
        tensor = torch.tensor([value])
        _bend_element(fault, tensor)
        return float(tensor)
    return math.nan if fault.action == "nan" else math.inf


def _bend_element(fault: Fault, tensor: Tensor) -> None:
    """The largest below 2, whose highest exponent bit is 0: the flip makes it huge, as the worst cosmic ray would."""
    flat = tensor.view(-1)
    place = int(torch.where(flat.abs() < 2, flat.abs().float(), -1.0).argmax())
    if fault.action == "flip":
        dtype, highest = FLIPPED[tensor.dtype]
        flat.view(dtype)[place] ^= 1 << (highest if fault.value is None else int(fault.value))
    else:
        flat[place] = math.nan if fault.action == "nan" else math.inf


def _local(tensor: Tensor) -> Tensor:
    """This rank's part of a tensor that is shared out."""
    to_local = getattr(tensor, "to_local", None)
    return to_local() if to_local else tensor
