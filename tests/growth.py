"""How the time of a call grows with the length of its text: doubled until it can be measured, then judged by its last two doublings.

CPU time of one thread, the best of a few: neighbours on a busy machine change it little. A call that does not end is stopped by a
timer of CPU time, which `re` looks at while it matches.
"""

import gc
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

FIRST, LOOK, LONGEST = 500, 4_000, 64_000  # characters
SUSPECT = 16.0  # times, from FIRST to LOOK: in proportion it would be 8, its square 64
MEASURABLE = 0.3  # seconds; a text that takes so long need not be doubled again
SURE = 0.04  # seconds; what takes so long is measured once
FLOOR = 0.0005  # seconds: what takes less at LOOK is not worth a second look
STEEP = 2.9  # times for a doubling: in proportion it is 2, its square 4
STUCK = 2.0  # seconds for a single call


class _StuckError(Exception):
    pass


def grows_too_fast(call: Callable[[str], object], text: Callable[[int], str]) -> str | None:
    """What was seen, if the time of `call(text(n))` grows faster than n; None if it does not. `text(n)` has about n characters."""
    first, look = text(FIRST), text(LOOK)
    try:
        seconds = _seconds(call, look)
        if seconds < FLOOR or seconds < SUSPECT * _seconds(call, first, 3):
            return None
        sizes, times = [FIRST], [_seconds(call, first, 3)]
        while times[-1] < MEASURABLE and sizes[-1] < LONGEST:
            sizes.append(2 * sizes[-1])
            times.append(_seconds(call, text(sizes[-1]), 3))
        while len(times) < 3:
            sizes.insert(0, sizes[0] // 2)
            times.insert(0, _seconds(call, text(sizes[0]), 3))
        if _is_steep(times) and times[-1] < MEASURABLE:  # a cache that has just become too small is steep once
            sizes.append(2 * sizes[-1])
            times.append(_seconds(call, text(sizes[-1]), 3))
    except _StuckError:
        return f"more than {STUCK} s for at most {LONGEST:,} characters"
    if _is_steep(times):
        seen = ", ".join(f"{n:,}: {1000 * each:.2f} ms" for n, each in zip(sizes[-3:], times[-3:], strict=True))
        return f"characters and time: {seen}"
    return None


def _is_steep(times: list[float]) -> bool:
    before, half, whole = times[-3:]
    return whole > STEEP * half and half > STEEP * before


def _seconds(call: Callable[[str], object], text: str, tries: int = 1) -> float:
    with _bounded():
        times = []
        for _ in range(tries):
            began = time.thread_time()
            call(text)
            times.append(time.thread_time() - began)
            if times[-1] > SURE:
                break
        return min(times)


@contextmanager
def _bounded() -> Iterator[None]:
    def stop(_: int, __: FrameType | None) -> None:
        raise _StuckError

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, STUCK)
    gc.disable()
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
        gc.enable()
