"""What ARCHITECTURE.md states about the house: small folders, one name for one thing, imports that go down, a map that is current.

make claim-house             some seconds
make claim-house FULL=1      and the quick tests, which are to take 90 seconds on two quiet cores
"""

import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / place) for place in ("benchmarks", "claims", "docs/site")]

import house_map
from claim import Claims, run
from house import House

NOUNS = 3  # names that end like participles and are what users read, or nouns of the field: Settings.changed, smoothed_loss


def main(claims: Claims, full: bool) -> None:
    house = House.read(ROOT)
    claims.at_most("folders of more than 14 files, model and decoding left out", len(house.large_folders()), 0)
    claims.at_most("public class names that mean two things", len(house.names_used_twice()), 0)
    claims.at_most("functions named by a participle", len(house.participles()), NOUNS)
    claims.at_most("arrows between the parts of training", house.arrows("training"), 40)
    claims.at_most("arrows between the parts of serving", house.arrows("serving"), 60)
    claims.at_most("lines of the package", house.lines(), 57_000)
    old = [page for page, text in house_map.current_pages().items() if page.read_text("utf-8") != text]
    claims.at_most("pages whose map is not current", len(old), 0)
    if full:
        began = time.monotonic()
        done = subprocess.run(["make", "test"], cwd=ROOT, check=False)
        claims.at_least("the quick tests pass", done.returncode == 0, 1)
        claims.at_most("... seconds", time.monotonic() - began, 90)


if __name__ == "__main__":
    run(main, __doc__)
