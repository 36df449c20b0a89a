"""What the docs state about many languages in one model: a tag decides the language, and a sentence's company decides nothing.

make claim-languages            under a minute on 2 quiet cores: number words in German and French, learnt for a while
make claim-languages FULL=1     also `limelight demo --french` to its end, and benchmarks/languages.py (LIMELIGHT_DATA): some three hours
"""

import json
import os
import subprocess
import sys
import tempfile
from difflib import SequenceMatcher
from pathlib import Path

ROOT = Path(__file__).parents[1]

from claim import Claims, run
from limelight.bundle import read
from limelight.cli.demo.corpus import numbers, recipe, write_corpus
from limelight.cli.demo.numerals import SAY, english
from limelight.interop.ctranslate2.export import export
from limelight.translator.pipeline import TranslationOptions
from limelight.translator.translate import Translator

STEPS, TEXTS = 240, 30
TARGETS = ("de", "fr")


def measure(claims: Claims, full: bool) -> None:
    with tempfile.TemporaryDirectory() as work:
        folder = learn(Path(work))
        asked = [english(number) for number in numbers()["test"][:TEXTS]]
        bundle = read(folder / "bundle")
        export(bundle, "float32", asked[:8])
        for engine in ("torch", "ctranslate2"):
            with Translator.load(folder, threads=2, engine=engine) as translator:
                company(claims, translator, engine, asked)
        with Translator.load(folder, threads=2, engine="torch") as translator:
            told(claims, translator, asked)
        if full:
            demo(claims, Path(work, "demo"))
            experiments(Path(work))


def learn(work: Path) -> Path:
    corpus, folder = work / "corpus", work / "en-de-fr"
    write_corpus(corpus, TARGETS)
    recipe(corpus, STEPS // len(TARGETS), TARGETS).save(work / "recipe.toml")
    command = ["train", str(work / "recipe.toml"), "-o", str(folder), "--no-export", "--quiet"]
    done = subprocess.run([sys.executable, "-P", "-m", "limelight", *command], capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    return folder


def company(claims: Claims, translator: Translator, engine: str, texts: list[str]) -> None:
    """Sentences of both directions in one batch, beside each of them alone."""
    views = [translator.towards(each) for each in TARGETS]
    alone = [view.translate([text])[0].text for text in texts for view in views]
    planned = [sentence for text in texts for view in views for sentence in view.plan([text]).asked]
    together = [found for found in translator.run(planned, translator.settings.search, TranslationOptions()) if found is not None]
    claims.at_most(
        f"{engine}: of {len(alone)}, changed by their company", sum(a != b.text for a, b in zip(alone, together, strict=True)), 0
    )
    same = sum(a == b for a, b in zip(alone[::2], alone[1::2], strict=True))
    claims.at_most("... the same in German and French (control)", same, 0)


def told(claims: Claims, translator: Translator, texts: list[str]) -> None:
    """After a minute it knows the languages, not yet all numbers: what is asked in French is like French, and hiding the tag is seen."""
    french, likeness = translator.towards("fr").translate(texts), {}
    for code in TARGETS:
        wanted = [SAY[code](number) for number in numbers()["test"][:TEXTS]]
        likeness[code] = [SequenceMatcher(None, each.text, said).ratio() for each, said in zip(french, wanted, strict=True)]
    like = sum(a > b for a, b in zip(likeness["fr"], likeness["de"], strict=True))
    claims.at_least(f"French asked: of {len(texts)}, more like French than like German", like, 0.95 * len(texts))
    dark = [translator.towards("fr").trace(text, nbest=1, mask_source=[0]).target.text for text in texts[:20]]
    claims.at_least("of 20, changed when the tag is hidden", sum(a != b.text for a, b in zip(dark, french, strict=False)), 1)


def demo(claims: Claims, folder: Path) -> None:
    command = ["demo", "--french", "--no-open", "--json", "-o", str(folder)]
    done = subprocess.run([sys.executable, "-P", "-m", "limelight", *command], capture_output=True, check=True)
    found = json.loads(done.stdout)
    for language in TARGETS:
        claims.at_least(
            f"demo: of {found['unseen']} unseen numbers, right in {language}", found["others"][language], 0.97 * found["unseen"]
        )


def experiments(work: Path) -> None:
    if not os.environ.get("LIMELIGHT_DATA"):
        print("LIMELIGHT_DATA is not set: benchmarks/languages.py was not run")
        return
    for name, steps in (("multi30k", 1800), ("ebible", 1500), ("register", 1000)):
        subprocess.run([sys.executable, ROOT / "benchmarks" / "languages.py", name, "--steps", str(steps), "-o", work / "many"], check=True)


if __name__ == "__main__":
    run(measure, __doc__)
