"""A campaign against all of it: texts, documents, requests, kills, clocks and damage, again and again from a seed.

    python benchmarks/campaign.py texts 40000 --seed 1 --minutes 10
    python benchmarks/campaign.py documents 20000
    python benchmarks/campaign.py requests 20000
    python benchmarks/campaign.py kills 30
    python benchmarks/campaign.py clock
    python benchmarks/campaign.py run-damage

Faults are appended to --journal, one JSON object per line, with what shows them again. The same command goes on where the last one
stopped. A summary ends it; the exit code is 1 if something was found.
"""

import argparse
import json
import signal
import sys
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from campaign_journal import Journal

COUNTS = {"texts": 40_000, "documents": 20_000, "requests": 20_000, "kills": 30, "clock": 100, "run-damage": 100}


def trial_of(name: str) -> Callable[[Journal, int], None]:
    """Each loads only what it needs."""
    if name == "texts":
        from campaign_texts import run
    elif name == "documents":
        from campaign_documents import run
    elif name == "requests":
        from campaign_requests import run
    elif name == "kills":
        from campaign_kills import run
    elif name == "clock":
        from campaign_clock import run
    else:
        from campaign_run_damage import run
    return run


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trial", choices=COUNTS)
    parser.add_argument("count", nargs="?", type=int, help="cases, unless its own number")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--journal", type=Path, default=Path("campaign.jsonl"))
    asked = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(number))  # so that nothing is left running
    journal = Journal(asked.journal, asked.trial, asked.seed, asked.minutes)
    trial_of(asked.trial)(journal, COUNTS[asked.trial] if asked.count is None else asked.count)
    print(json.dumps(journal.summary()))
    return bool(journal.faults)


if __name__ == "__main__":
    sys.exit(main())
