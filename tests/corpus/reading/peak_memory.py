"""The peak memory of reading one part, measured in a process of its own."""

import subprocess
import sys

# ru_maxrss of a child starts at the size of its parent, which would hide growth; VmHWM belongs to the new program alone.
PROGRAM = """
import resource, sys
from pathlib import Path
from limelight.corpus.readers import CorpusPart, read
rows = sum(len(batch) for batch in read(CorpusPart(0, 0, sys.argv[1], tuple(sys.argv[2:]), ("en", "de")), 4_000))
status = Path("/proc/self/status")
if status.exists():
    kilobytes = next(int(line.split()[1]) for line in status.read_text().split("\\n") if line.startswith("VmHWM"))
else:
    kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(rows, kilobytes // 1024)
"""


def rows_and_peak(kind: str, *paths: object) -> tuple[int, int]:
    """Rows read, and megabytes at the peak."""
    done = subprocess.run([sys.executable, "-c", PROGRAM, kind, *map(str, paths)], capture_output=True, check=True)
    rows, megabytes = done.stdout.split()
    return int(rows), int(megabytes)
