"""Device, number format, threads, seed and memory of a run are chosen here, each with its reason.

Importing this file does nothing, and only what decides for torch loads it. What is chosen is a `RuntimeChoice`, so that a screen or a
log can state the reason.
"""

import ctypes
import os
import platform
import random
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from limelight.errors import RuntimeChoiceError

if TYPE_CHECKING:
    import torch

T = TypeVar("T")
_threads_lock = threading.Lock()


@dataclass(frozen=True)
class RuntimeChoice(Generic[T]):
    value: T
    why: str

    def __str__(self) -> str:
        return f"{self.value} ({self.why})"


def choose_device(asked: str | None = None) -> "RuntimeChoice[torch.device]":
    """The device asked for, else the accelerator that torch sees, else the CPU."""
    import torch

    seen = torch.accelerator.current_accelerator(check_available=True)
    if asked is None:
        if seen is None:
            return RuntimeChoice(torch.device("cpu"), "torch sees no accelerator")
        return RuntimeChoice(seen, "the accelerator that torch sees")
    try:
        device = torch.device(asked)
    except RuntimeError:
        raise RuntimeChoiceError(f"{asked!r} is not the name of a device; try cpu, cuda, cuda:0, mps or xpu") from None
    if device.type != "cpu" and (seen is None or seen.type != device.type):
        has = f"it sees {seen.type}" if seen else "it sees no accelerator"
        raise RuntimeChoiceError(f"device {asked!r} was asked for, but this torch cannot use one ({has}); try cpu")
    if device.type != "cpu" and (device.index or 0) >= (count := torch.accelerator.device_count()):
        raise RuntimeChoiceError(f"device {asked!r} was asked for, and this machine has {device.type}:0 to {device.type}:{count - 1}")
    return RuntimeChoice(device, "asked for")


def choose_dtype(device: "torch.device", asked: str | None = None) -> "RuntimeChoice[torch.dtype]":
    """The format for matrix products: bfloat16 where the hardware multiplies it, else float32."""
    import torch

    formats = {"bfloat16": torch.bfloat16, "float32": torch.float32, "float64": torch.float64}
    if asked is not None:
        if asked not in formats:
            raise RuntimeChoiceError(
                f"{asked!r} is no number format of torch here; try {', '.join(formats)}, or int8 with an export for CTranslate2"
            )
        return RuntimeChoice(formats[asked], "asked for")
    if device.type == "cpu":
        if units := bfloat16_units():
            return RuntimeChoice(torch.bfloat16, f"this CPU multiplies bfloat16 matrices ({', '.join(units)})")
        return RuntimeChoice(torch.float32, "this CPU has no bfloat16 instructions")
    if device.type == "cuda" and not torch.cuda.is_bf16_supported(including_emulation=False):
        return RuntimeChoice(torch.float32, "this GPU has no bfloat16 units")
    return RuntimeChoice(torch.bfloat16, f"{device.type} multiplies bfloat16 matrices")


def bfloat16_units() -> list[str]:
    """What this CPU has to multiply bfloat16 with. Without any, torch does it by way of float32, two to three times as slow as float32.

    These names of torch are its own affair, and may go. What oneDNN calls supported on x86 is any AVX-512, without such instructions too.
    """
    import torch

    if platform.machine().lower() not in ("x86_64", "amd64"):
        return ["oneDNN"] if torch.ops.mkldnn._is_mkldnn_bf16_supported() else []
    asked = {"AMX": "_is_amx_tile_supported", "AVX512-BF16": "_is_avx512_bf16_supported"}
    return [name for name, question in asked.items() if getattr(torch.cpu, question, bool)()]


def choose_threads(asked: int | None = None) -> RuntimeChoice[int]:
    """As many threads as `count_threads` says, set for the whole process: for programs, never for a library inside one."""
    import torch

    chosen = count_threads(asked)
    torch.set_num_threads(chosen.value)
    return chosen


def available_cores() -> int:
    """Those this process may use, which may be fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def count_threads(asked: int | None = None) -> RuntimeChoice[int]:
    """One thread for each core this process may use (affinity, and the share that a container was given).

    Where a launcher started several processes on this machine, the cores are shared: more threads than cores wait for each other.
    """
    allowed = min(available_cores(), read_core_limit() or available_cores())
    sharing = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    why = "one for each core this process may use" if sharing <= 1 else f"{allowed} cores for {sharing} processes"
    allowed = max(1, allowed // max(1, sharing))
    if asked is not None and asked < 1:
        raise RuntimeChoiceError(f"{asked} threads cannot work; give 1 or more (this process may use {allowed} cores)")
    return RuntimeChoice(asked, "asked for") if asked is not None else RuntimeChoice(allowed, why)


def use_one_thread_here() -> int:
    """Let torch work with one thread in the thread that calls this, and nowhere else. Returns how many it had.

    Torch keeps a number for each thread that has used it, and one for threads to come. It sets both at once, so a short thread of its own
    puts the second back.
    """
    if "torch" not in sys.modules:
        return 1
    import torch

    with _threads_lock:
        before = torch.get_num_threads()
        if before > 1:
            torch.set_num_threads(1)
            putting_back = threading.Thread(target=torch.set_num_threads, args=(before,))
            putting_back.start()
            putting_back.join()
        return before


@contextmanager
def one_thread_here() -> Iterator[None]:
    """`use_one_thread_here` until the block ends; also as a decorator of a function."""
    before = use_one_thread_here()
    try:
        yield
    finally:
        if before > 1:
            sys.modules["torch"].set_num_threads(before)


def read_core_limit(file: Path = Path("/sys/fs/cgroup/cpu.max")) -> int | None:
    """Return the cores of a container, from its microseconds in each period: b"150000 100000" -> 2. None where nothing says so."""
    try:
        share, period = file.read_bytes().split()
        return max(1, -(-int(share) // int(period)))
    except (OSError, ValueError, ZeroDivisionError):
        return None


def set_seed(asked: int | None = None) -> RuntimeChoice[int]:
    """Seed the global generators that dropout and initialization draw from. Programs call this; the library never does."""
    import torch

    drawn = RuntimeChoice(random.SystemRandom().randrange(2**31), "drawn")
    chosen = drawn if asked is None else RuntimeChoice(asked, "asked for")
    random.seed(chosen.value)
    torch.manual_seed(chosen.value)
    return chosen


def keep_freed_memory() -> RuntimeChoice[bool]:
    """Ask glibc to keep large freed blocks instead of returning them to the kernel.

    A training step frees and takes the same megabytes again and again; given back, each first touch is a page fault.
    Measured on 2 cores: 4 to 16 % of a step. The price is that the process does not shrink after its peak.
    """
    if sys.platform != "linux" or platform.libc_ver()[0] != "glibc":
        return RuntimeChoice(False, "only glibc has this setting")
    M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_MAX = -1, -2, -4  # malloc.h
    mallopt = ctypes.CDLL(None).mallopt
    done = [mallopt(M_MMAP_MAX, 0), mallopt(M_TRIM_THRESHOLD, 2**31 - 1), mallopt(M_TOP_PAD, 64 * 2**20)]
    return RuntimeChoice(all(done), "freed blocks stay with the process, which spares page faults")


def give_back_memory() -> None:
    """Free blocks back to the kernel, after work that comes once in a while: kept, they would add up between those of the steps."""
    if sys.platform == "linux" and platform.libc_ver()[0] == "glibc":
        ctypes.CDLL(None).malloc_trim(0)


def memory_at_hand(device: "torch.device") -> int | None:
    """Bytes that the device can still give; None where the system does not tell."""
    if device.type == "cuda":
        import torch

        kept = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)  # by torch, from what was freed
        return int(torch.cuda.mem_get_info(device)[0]) + kept
    try:
        with Path("/proc/meminfo").open("rb") as file:
            found = next(line for line in file if line.startswith(b"MemAvailable:"))
    except (OSError, StopIteration):
        return None
    return int(found.split()[1]) * 1024


def end_process(process: "subprocess.Popen[bytes]") -> None:
    """Ask it to end; make it, if it has not after ten seconds."""
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
