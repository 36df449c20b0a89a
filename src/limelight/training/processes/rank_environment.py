"""The environment tells a process whether it is the main rank, and which supervisor started it.

No torch here: it is asked before anything is loaded.
"""

import ctypes
import os
import signal
import sys
import threading
import time
from typing import Final

SUPERVISOR: Final = "LIMELIGHT_SUPERVISOR"  # the process that started this one as a rank of its run
PR_SET_PDEATHSIG: Final = 1  # <linux/prctl.h>
PREEMPTED: Final = 75


def is_main() -> bool:
    """True in a process of its own, and in the one of several that writes and prints."""
    return os.environ.get("RANK", "0") == "0" or os.environ.get("WORLD_SIZE", "1") == "1"


def is_supervised() -> bool:
    return SUPERVISOR in os.environ


def end_with_supervisor() -> None:
    """Called in a rank, first of all, in its main thread. Without the one that started it, it would go on with nobody to stop it.

    Not a request to save: the next start may follow at once, and finds the folder free.
    """
    if not is_supervised():
        return
    supervisor = int(os.environ[SUPERVISOR])
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    else:
        threading.Thread(target=_watch, args=(supervisor,), daemon=True).start()
    if os.getppid() != supervisor:  # it ended before it could be watched
        os._exit(1)


def exit_on_preemption() -> None:
    """Until a run listens to signals itself there is nothing to save, and to be told to stop is no failure: it may begin later."""
    for number in (signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)):  # Windows has no SIGHUP
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, lambda number, frame: os._exit(PREEMPTED))


def _watch(supervisor: int) -> None:
    while os.getppid() == supervisor:
        time.sleep(1)
    os._exit(1)
