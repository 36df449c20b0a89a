"""A watchdog ends a server whose event loop is stuck, for example in a pattern that never ends.

A loop that is held hears no signal and keeps no deadline, and where Python's lock is held as well no thread of Python can do anything about
it. So a timer outside of Python's lock, faulthandler's, is set again by the loop every second. When it runs out, it writes where every
thread stands, as places in the code and nothing of what they work on, and ends the process. Whoever watches over it starts it again.
"""

import asyncio
import faulthandler
import os
import signal
from typing import NoReturn

BEATS = 4  # that a loop may miss, at least
SECONDS = 1.0  # between two of them, at most


async def watch(seconds: float) -> NoReturn:
    """Watch until cancelled. `seconds` of silence are the end: exit code 1, and "Timeout (0:00:30)!" before the places."""
    try:
        while True:
            faulthandler.dump_traceback_later(seconds, exit=True)
            await asyncio.sleep(min(SECONDS, seconds / BEATS))
    finally:
        faulthandler.cancel_dump_traceback_later()


def pause(seconds: float) -> None:
    """For Ctrl-Z, which is no silence: the timer runs on while the process stands still, so it is set again afterwards."""
    faulthandler.cancel_dump_traceback_later()
    os.kill(os.getpid(), signal.SIGSTOP)
    faulthandler.dump_traceback_later(seconds, exit=True)
