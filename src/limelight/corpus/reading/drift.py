"""`describe_drift` guesses from the lengths of lines where two files that should be parallel part ways.

Long sentences have long translations: over a thousand aligned lines the lengths of both sides correlate at 0.8 to 0.95.
After a lost or doubled line they do not, while the sums of the lengths stay what they were. So we look for the first
thousand lines whose correlation falls to a fraction of what it was, and stays there in the next.
"""

import statistics
from collections import deque
from collections.abc import Iterator
from typing import Any

import numpy as np

from limelight.corpus.reading.lines import read_byte_lines
from limelight.corpus.reading.streams import open_bytes

WINDOW = 1_000
REMEMBERED = 200  # windows that decide what is usual; bounded, and the recent ones count most
USUAL = 0.6  # what is expected of parallel text before the first window is seen
FALL = 0.5  # a window below this part of what is usual is suspected


def describe_drift(source_path: str, target_path: str) -> str:
    """A sentence for the error about different counts."""
    window = first_drifting_window(source_path, target_path)
    if window is None:
        return "No place is seen where they part: one may be cut at its end. Compare the last lines of both."
    first = window * WINDOW + 1
    return (
        f"They seem to part between lines {first:,} and {first + WINDOW - 1:,}. "
        f"Compare them there: paste {source_path} {target_path} | sed -n '{first},{first + WINDOW - 1}p'"
    )


def first_drifting_window(source_path: str, target_path: str) -> int | None:
    """Position of the first window that does not correlate as those before it, nor does the next one if there is one."""
    usual: deque[float] = deque(maxlen=REMEMBERED)
    suspect: int | None = None
    for window, now in enumerate(_correlations(source_path, target_path)):
        if now >= FALL * (statistics.median(usual) if usual else USUAL):
            usual.append(now)
            suspect = None
        elif suspect is None:
            suspect = window
        else:
            break
    return suspect


def _correlations(source_path: str, target_path: str) -> Iterator[float]:
    """Correlate the logarithms of the lengths, for each window both files fill."""
    pairs = zip(_lengths(source_path), _lengths(target_path), strict=False)
    for source, target in pairs:
        if len(source) < WINDOW or len(target) < WINDOW:
            return
        if source.std() > 0 and target.std() > 0:
            yield float(np.corrcoef(source, target)[0, 1])
        else:
            yield 1.0  # all lines of one length say nothing


def _lengths(path: str) -> Iterator[Any]:
    """Arrays of WINDOW logarithms: a batch may be smaller where lines are long, so what is over is carried on."""
    held = np.empty(0)
    with open_bytes(path) as stream:
        for lines in read_byte_lines(stream, WINDOW):
            held = np.concatenate([held, np.log1p(lines.ends - lines.starts)])
            while len(held) >= WINDOW:
                yield held[:WINDOW]
                held = held[WINDOW:]
    yield held
