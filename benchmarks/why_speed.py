"""From a key press to the answer on the desk: why this piece, of 24 pieces of source and 24 of translation, on `small`.

    python benchmarks/why_speed.py [--times 9]

`limelight serve` is a process of its own, the page is in headless Chromium, and the key is y. The model was never trained and its answers
are nonsense; what they take is not. Nothing else should run beside it. FLORES is in LIMELIGHT_DATA; web/node_modules is needed.
"""

import argparse
import json
import statistics
import subprocess
import tempfile
from pathlib import Path

from limelight.bundle import read
from limelight.text.pieces.tokenizer import Tokenizer
from serve_process import Server, limelight
from web import ROOT, lines_in_ten_scripts, untrained

PIECES = 24


def text_of(tokenizer: Tokenizer, lines: list[str]) -> str:
    """As many words of these lines as make `PIECES` pieces: one that would be too many is left out, and a shorter one taken."""
    text = ""
    for word in " ".join(lines).split(" "):
        longer = f"{text} {word}".strip()
        if word.isalpha() and len(tokenizer.encode_texts([longer])[0]) <= PIECES:
            text = longer
    return text


def press(bundle: Path, times: int) -> list[float]:
    """Milliseconds; each time another piece is asked about, from the last one back."""
    lines = lines_in_ten_scripts(20)[180:200]  # FLORES in German, whose words end at spaces
    tokenizer = read(bundle).source_tokenizer
    source, target = (text_of(tokenizer, some) for some in (lines[:10], lines[10:]))
    last = len(tokenizer.encode_texts([target])[0]) - 1
    pieces = [str(last - back) for back in range(times)]
    with Server(limelight(f"en-de={bundle}", "--threads", 1)) as server:
        address = f"http://127.0.0.1:{server.port}/"
        command = ["node", "measure/why_speed.mjs", address, "en-de", source, target, *pieces]
        done = subprocess.run(command, cwd=ROOT / "web", stdout=subprocess.PIPE, check=True)
    found: list[float] = json.loads(done.stdout)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=9)
    with tempfile.TemporaryDirectory() as work:
        first, *found = press(untrained(Path(work, "small")), parser.parse_args().times + 1)
    median, worst = statistics.median(found), max(found)
    told = f"median {median:.0f} ms, worst {worst:.0f} ms of {len(found)}; the first {first:.0f} ms"
    print(f"key to answer, {PIECES} + {PIECES} pieces on small: {told}")


if __name__ == "__main__":
    main()
