"""Worker processes end with their parent, however it ended. Neither a pool nor a pipe notices in time that it was killed."""

import multiprocessing
import os
import threading


def end_with_parent() -> None:
    """End this worker when its parent ends. It is called once, when the worker starts."""
    threading.Thread(target=_wait_for_the_end, daemon=True).start()


def _wait_for_the_end() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
