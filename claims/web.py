"""What docs/web.md states: ids and translations in a browser are those of torch, offline, from a disk, and never by changed files.

make claim-web             about a minute on 2 cores: a small model of number words; needs Chromium, `make web` and LIMELIGHT_DATA
make claim-web FULL=1      10,000 lines by six tokenizers; visits with Chromium and Firefox: offline, file://, changed bytes, axe-core
"""

import json
import shutil
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "benchmarks"))

from claim import Claims, run
from limelight.bundle import read
from limelight.interop.web.browser import find_browsers
from limelight.interop.web.export import export_web
from limelight.text.pieces.tokenizer import PieceSettings, Tokenizer, learn
from web import NASTY, SIX_KINDS, count_other_ids, lines_in_ten_scripts, visit_page

STORED = ROOT / "tests" / "bundles" / "format-1"
KINDS = (("bpe", 4000, True), ("unigram", 4000, True), ("unigram", 4000, False))


def measure(claims: Claims, full: bool) -> None:
    browser = next(iter(find_browsers()), None)
    if browser is None:
        sys.exit("there is no browser on the PATH")
    texts, kinds = (lines_in_ten_scripts(), SIX_KINDS) if full else (lines_in_ten_scripts(250), KINDS)
    made = [Tokenizer(learn(texts[::4], PieceSettings(algorithm=way, size=size, byte_fallback=fall))) for way, size, fall in kinds]
    others, seconds = count_other_ids([*texts, *NASTY], made, browser)
    claims.at_most(f"of {len(texts) + len(NASTY)} texts by {len(kinds)} tokenizers, other ids or texts", sum(others), 0)
    claims.at_most("a word of 50,014 letters, seconds", seconds, 1)
    with tempfile.TemporaryDirectory() as work:
        found = export_web(read(STORED), Path(work, "page"))
        for parity in found.parity:
            name = f"{parity.numbers}: share of translations as torch's"
            if parity.numbers == "float32":
                claims.at_least(name, parity.same, 0.9)
            else:
                claims.note(name, parity.same)  # sentences made up of pieces, of which no model is sure: roundings change many
        listed = json.loads(Path(work, "page", "models.json").read_bytes())["models"][0]
        sizes = {numbers: sum(listed["files"][name]["bytes"] for name in listed["graphs"][numbers]) for numbers in listed["numbers"]}
        claims.at_most("bytes of uint8 over those of float32", sizes["uint8"] / sizes["float32"], 0.6)
    if full:
        claim_visit(claims, browser)
        if other := shutil.which("firefox-esr") or shutil.which("firefox"):
            claim_visit(claims, other)


def claim_visit(claims: Claims, browser: str) -> None:
    visited = visit_page(STORED, "one two three", browser)
    for name in ("online", "offline", "file"):
        claims.at_least(f"{Path(browser).name}, {name}: translates as torch", visited[name], 1)
    claims.at_least("... changed files refused, of 4", visited["refused"], 4)
    if "serious" in visited:
        claims.at_most("... axe-core: serious", visited["serious"], 0)


if __name__ == "__main__":
    run(measure, __doc__)
