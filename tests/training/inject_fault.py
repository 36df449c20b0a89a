"""Faults happen at named points of a real run, asked for by the environment and by nothing else. The product knows nothing of them.

    LIMELIGHT_FAULT=point:action[=value][@step][#rank][/start][,...]

    ckpt.write:sleep=1.0            every write of a checkpoint takes a second longer
    step.loss:nan@37#1              the loss of step 37 is no number, on rank 1
    step.gradient:flip@40-49        in the gradient of each of ten steps one bit of an exponent is another; flip=0: the lowest bit
    step.forward:kill@12#1/0        rank 1 kills itself in step 12, but not again after a restart
    step.forward:term@37            a run is asked to stop, exactly in step 37
    any:stop#0                      rank 0 is frozen at the first point it comes to

`install` wraps the functions of the points, those of modules that are imported later too. A process of its own does so by
`subprocess.run(..., env={**os.environ, **fault_environment("step.forward:kill@12")})`. What cannot be
understood is refused, with all that is known.
"""

import errno
import importlib.abc
import importlib.machinery
import importlib.util
import math
import os
import re
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache, wraps
from pathlib import Path
from types import ModuleType
from typing import Any, Final, TypeVar

import torch
from torch import Tensor

from limelight.errors import ConfigError

VARIABLE: Final = "LIMELIGHT_FAULT"
VALUED: Final = ("step.weights", "step.loss", "step.gradient")  # points that have a value
POINTS: Final = ("start", "step.forward", "step.optimizer", "validate", "ckpt.write", "ckpt.commit", *VALUED, "any")
FORM: Final = re.compile(
    r"(?P<point>[a-z.]+):(?P<action>[a-z]+)(=(?P<value>[-+.\w]+))?(@(?P<first>\d+)(-(?P<last>\d+))?)?(\#(?P<rank>\d+))?(/(?P<start>\d+))?"
)
# As whole numbers, and the highest bit of the exponent.
FLIPPED: Final = {
    torch.float32: (torch.int32, 30),
    torch.bfloat16: (torch.int16, 14),
    torch.float16: (torch.int16, 14),
}

Value = TypeVar("Value", float, Tensor, Mapping[str, Tensor])


@dataclass(frozen=True)
class InjectedFault:
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


def inject_fault(point: str, *, step: int, rank: int) -> None:
    """What the environment asks to happen here: a pause, an error, the end of the process."""
    for fault in _read_faults(point):
        if fault.action in ACTIONS and fault.at(point, step, rank):
            ACTIONS[fault.action](fault.value, f"{point} of step {step}, asked for by {VARIABLE}")


def corrupt_value(point: str, value: Value, *, step: int, rank: int) -> Value:
    """The value as the environment wants it. Of tensors, one element of the first is changed; `scale` changes all of them."""
    inject_fault(point, step=step, rank=rank)
    for fault in _read_faults(point):
        if fault.action in CORRUPTIONS and fault.at(point, step, rank):
            value = _corrupt(fault, value)
    return value


def _read_faults(point: str) -> tuple[InjectedFault, ...]:
    text = os.environ.get(VARIABLE)
    if not text:
        return ()
    assert point in POINTS, point
    return parse_faults(text)


@lru_cache(maxsize=4)
def parse_faults(text: str) -> tuple[InjectedFault, ...]:
    """Every part of the variable, or one error with all that is wrong in it."""
    problems: list[str] = []
    faults = [fault for part in text.split(",") if (fault := _parse_fault(part.strip(), problems))]
    if problems:
        raise ConfigError(f"{VARIABLE}={text} cannot be understood", problems)
    return tuple(faults)


def _parse_fault(part: str, problems: list[str]) -> InjectedFault | None:
    found = FORM.fullmatch(part)
    if found is None:
        problems.append(f"{part!r} is not point:action[=value][@step][#rank][/start]")
        return None
    point, action, value = found["point"], found["action"], found["value"]
    known = len(problems)
    if point not in POINTS:
        problems.append(f"there is no point {point}; there are {', '.join(POINTS)}")
    if action not in ACTIONS and action not in CORRUPTIONS:
        problems.append(f"there is no action {action}; there are {', '.join((*ACTIONS, *CORRUPTIONS))}")
    elif action in CORRUPTIONS and point in POINTS and point not in VALUED:
        problems.append(f"{action} needs a value, and {point} has none; {', '.join(VALUED)} have")
    if value is not None and not _is_number(value):
        problems.append(f"{value} is not a number, in {part!r}")
    if len(problems) > known:
        return None
    first, last = found["first"], found["last"]
    steps = (int(first), int(last or first)) if first else None
    rank, start = (int(found[name]) if found[name] else None for name in ("rank", "start"))
    return InjectedFault(point, action, float(value) if value is not None else None, steps, rank, start)


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
    _injected[why] += 1
    if _injected[why] <= (1 if value is None else value):
        raise torch.OutOfMemoryError(f"out of memory in {why}")


def _no_space(value: float | None, why: str) -> None:
    raise OSError(errno.ENOSPC, f"{os.strerror(errno.ENOSPC)} in {why}")


def _error(value: float | None, why: str) -> None:
    raise RuntimeError(f"an error in {why}")


def _exit(value: float | None, why: str) -> None:
    os._exit(1 if value is None else int(value))


ACTIONS: Final[dict[str, Callable[[float | None, str], None]]] = {
    "sleep": _sleep,
    "oom": _out_of_memory,
    "enospc": _no_space,
    "error": _error,
    "kill": lambda value, why: os.kill(os.getpid(), signal.SIGKILL),
    "stop": lambda value, why: os.kill(os.getpid(), signal.SIGSTOP),
    "term": lambda value, why: os.kill(os.getpid(), signal.SIGTERM),  # the run ends after this step, as when preempted
    "exit": _exit,
}
_injected: Counter[str] = Counter()
CORRUPTIONS: Final = ("nan", "inf", "scale", "flip")


def _corrupt(fault: InjectedFault, value: Value) -> Value:
    if isinstance(value, float | int):
        return _corrupt_number(fault, value)  # type: ignore[return-value]
    tensors = [value] if isinstance(value, Tensor) else list(value.values())
    with torch.no_grad():
        if fault.action == "scale":
            for tensor in tensors:
                _local(tensor).mul_(100.0 if fault.value is None else fault.value)
        else:
            _corrupt_element(fault, _local(tensors[0]))
    return value


def _corrupt_number(fault: InjectedFault, value: float) -> float:
    if fault.action == "scale":
        return value * (100.0 if fault.value is None else fault.value)
    if fault.action == "flip":
        tensor = torch.tensor([value])
        _corrupt_element(fault, tensor)
        return float(tensor)
    return math.nan if fault.action == "nan" else math.inf


def _corrupt_element(fault: InjectedFault, tensor: Tensor) -> None:
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


@dataclass
class Moment:
    """Which step this process takes, for points that are not told."""

    step: int = 0
    rank: int = 0


_now = Moment()


def fault_environment(faults: str) -> dict[str, str]:
    """Variables for a process that is to meet these faults."""
    here, there = str(Path(__file__).parent / "injection"), os.environ.get("PYTHONPATH", "")
    return {VARIABLE: faults, "PYTHONPATH": os.pathsep.join(filter(None, (here, there)))}


def install() -> None:
    """Wrap what is imported, and what will be. A second call does nothing."""
    if any(isinstance(finder, _Finder) for finder in sys.meta_path):
        return
    sys.meta_path.insert(0, _Finder())
    for name, patch in PATCHES.items():
        if name in sys.modules:
            patch(sys.modules[name])


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name: str, path: Any, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        if name not in PATCHES:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            run, loader = spec.loader.exec_module, spec.loader

            def run_and_patch(module: ModuleType) -> None:
                run(module)
                PATCHES[name](module)

            loader.exec_module = run_and_patch  # type: ignore[method-assign]
        return spec


def _before(owner: Any, name: str, hook: Callable[..., None]) -> None:
    """`hook` gets the arguments of each call before the function does."""
    function = getattr(owner, name)

    @wraps(function)
    def hooked(*arguments: Any, **named: Any) -> Any:
        hook(*arguments, **named)
        return function(*arguments, **named)

    setattr(owner, name, hooked)


def _here(point: str) -> None:
    inject_fault(point, step=_now.step, rank=_now.rank)


def _patch_step(module: Any) -> None:
    def begin(stepper: Any, step: int, *rest: Any, **named: Any) -> None:
        _now.step, _now.rank = step, stepper.standing.world.rank

    _before(module.Stepper, "take", begin)
    compute = module.gradients

    @wraps(compute)
    def gradients(model: Any, *arguments: Any, **named: Any) -> Any:
        at = {"step": _now.step, "rank": _now.rank}
        corrupt_value("step.weights", model.named, **at)
        losses = compute(model, *arguments, **named)
        losses = replace(losses, total=corrupt_value("step.loss", losses.total, **at))
        corrupt_value("step.gradient", {name: each.grad for name, each in model.named.items() if each.grad is not None}, **at)
        return losses

    module.gradients = gradients


def _patch_loop(module: Any) -> None:
    def begin(training: Any, **named: Any) -> None:
        _now.step, _now.rank = training.at.step, training.world.rank

    _before(module.TrainingLoop, "_validate", begin)


def _patch_writer(module: Any) -> None:
    def at(point: str) -> Callable[..., None]:
        return lambda attempt, *rest, **named: inject_fault(point, step=attempt.step, rank=attempt.world.rank)

    _before(module.Attempt, "write", at("ckpt.write"))
    _before(module.Attempt, "_rename", at("ckpt.commit"))


def _patch_assembly(module: Any) -> None:
    _before(
        module,
        "build_model",
        lambda *rest, **named: inject_fault("start", step=0, rank=int(os.environ.get("RANK", "0"))),
    )


PATCHES: Final[dict[str, Callable[[Any], None]]] = {
    "limelight.training.step.step": _patch_step,
    "limelight.training.step.gradients": lambda module: _before(module, "_in_parts", lambda *rest, **named: _here("step.forward")),
    "limelight.training.step.optimizers": lambda module: _before(
        module.Optimizers, "set_rate", lambda *rest, **named: _here("step.optimizer")
    ),
    "limelight.training.validation.validator": lambda module: _before(
        module.Validator, "validate", lambda *rest, **named: _here("validate")
    ),
    "limelight.training.run.loop": _patch_loop,
    "limelight.training.checkpoints.writer": _patch_writer,
    "limelight.training.run.assembly": _patch_assembly,
}
