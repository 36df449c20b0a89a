"""A translator inside a browser, beside the same translator in torch: ids, translations, sizes, speed, and a visit as a person makes it.

    python benchmarks/web.py ids                                    six tokenizers, 10,000 lines in ten scripts, nasty strings
    python benchmarks/web.py captions BUNDLE LINES [--references]   float32 by greedy search and beam 4, uint8 by beam 4
    python benchmarks/web.py sizes                                  a bundle of the preset `small`, never trained
    python benchmarks/web.py visit BUNDLE "a sentence" [PICTURES]   download, offline, changed bytes, file://, axe-core
    python benchmarks/web.py --browser chromium --browser firefox-esr ...     the same in each of these

Chromium is found on the PATH, FLORES and NTREX in LIMELIGHT_DATA; a visit needs web/node_modules.
Ids, translations and sizes do not depend on the machine; speeds do.
"""

import argparse
import base64
import gzip
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sacrebleu.metrics.chrf import CHRF

import limelight.interop.web.export
import web_firefox
from limelight.bundle import BundleSettings, read, write
from limelight.decoding.config import SearchSettings
from limelight.interop.parity import plain_search
from limelight.interop.web.browser import find_browsers, run_jobs
from limelight.interop.web.export import PAGE, export_web
from limelight.model.config import ModelConfig
from limelight.model.transformer import Transformer
from limelight.text.normalize import DEFAULT_STEPS, normalize_text
from limelight.text.pieces.tokenizer import PieceSettings, Tokenizer, learn
from limelight.translator.translate import Translator

ROOT = Path(__file__).parents[1]
SCRIPTS = ("arb_Arab", "ell_Grek", "heb_Hebr", "hin_Deva", "jpn_Jpan", "kor_Hang", "rus_Cyrl", "tha_Thai", "zho_Hans", "deu_Latn")
LINES = 500  # of each, in FLORES and in NTREX
SIX_KINDS = [(way, size, fall) for way in ("bpe", "unigram") for size, fall in ((1000, True), (6000, True), (6000, False))]
NASTY = (
    *(
        "",
        " ",
        "\u2581",
        "\u2581\u2581a",
        "a  b ",
        "⟦0⟧",
        "a⟦1⟧b ⟦15⟧⟦16⟧",
        "⟦0⟧⟦0⟧x",
        "<s></s><pad>",
        "<0x41>",
        "<tag:3>",
        "\t\n\r",
        "\0a",
    ),
    *("e\u0301", "\u1100\u1161\u11a8", "\ufeffa\u200bb\u00adc", "\U0001f469\u200d\U0001f467\U0001f1e9\U0001f1ea", "\U0001d573\U0001d58a"),
    *("\U0010ffff", "\ufffd", "a\u0300\u0301\u0302" * 20, "\ufb01\xbd\u338f", "\u01c5", "\u202eabc", "\xbf\xa1\xab\xbb\u201e\u201c"),
    *("\U0002070e\U00020731", "\ufdfa", "\u0e01\u0e33", "\u0939\u093f\u0928\u094d\u0926\u0940\u200d", "a" * 3000, "ab" * 2000, "字" * 999),
    *("\u3000全\u3000", "It's 3.14 €!", "\u2028x\u2029", "⟦0⟧" * 300, "x⟦", "⟧⟦1⟧⟦"),
)
WORD = "Donaudampfschifffahrtsgesellschaft" * 1471  # 50,014 letters without a space


def lines_in_ten_scripts(lines: int = LINES) -> list[str]:
    """Those of FLORES, then those of NTREX, which names languages without their scripts but for Chinese."""
    data = Path(os.environ["LIMELIGHT_DATA"])
    paths = [data / "flores200" / f"devtest.{script}.gz" for script in SCRIPTS]
    paths += [data / "ntrex" / f"newstest2019.{'zho-CN' if script == 'zho_Hans' else script[:3]}.gz" for script in SCRIPTS]
    return [line for path in paths for line in read_lines(path)[:lines]]


def count_other_ids(texts: Sequence[str], tokenizers: Sequence[Tokenizer], browser: str) -> tuple[list[int], float]:
    """Of each tokenizer the texts whose ids or whose text again differ in a browser, and the seconds for a word of 50,000 letters."""
    jobs: list[dict[str, Any]] = []
    for tokenizer in tokenizers:
        own = {"pieces": base64.b64encode(tokenizer.model).decode(), "steps": DEFAULT_STEPS, "by_words": tokenizer.by_words}
        jobs += [{**own, "texts": list(texts)}, {**own, "texts": [WORD]}]
    answer = run_jobs(PAGE, jobs, browser)
    others = []
    for tokenizer, found in zip(tokenizers, answer["results"][::2], strict=True):
        tidy = [normalize_text(text, DEFAULT_STEPS) for text in texts]
        ids = tokenizer.encode_texts(["" if text.isspace() else text for text in tidy])
        again = tokenizer.decode(ids)
        others.append(sum(each != {"ids": own, "text": text} for each, own, text in zip(found, ids, again, strict=True)))
    return others, max(timing["seconds"] for timing in answer["timings"][1::2])


def ids(args: argparse.Namespace) -> None:
    texts = lines_in_ten_scripts()
    tokenizers = [
        Tokenizer(learn(texts[:: 3 if way == "unigram" else 1], PieceSettings(algorithm=way, size=size, byte_fallback=fall)))
        for way, size, fall in SIX_KINDS
    ]
    for browser in browsers(args.browser):
        others, seconds = count_other_ids([*texts, *NASTY], tokenizers, browser)
        print(Path(browser).name)
        for kind, count in zip(SIX_KINDS, others, strict=True):
            print(f"{kind}: {count} of {len(texts) + len(NASTY)} differ")
        print(f"a word of {len(WORD)} letters: at most {seconds:.2f} s")


def captions(args: argparse.Namespace) -> None:
    texts = read_lines(args.lines)[: args.most]
    with tempfile.TemporaryDirectory() as work:
        page = Path(work, "page")
        bundle = read(args.bundle)
        made = export_web(bundle, page, texts=texts[:8])
        model = json.loads((page / "models.json").read_bytes())["models"][0]
        (page / "prove.html").write_bytes((PAGE / "prove.html").read_bytes())
        print(f"{sum(made.files.values()) / 1e6:.1f} MB; uint8 {size_of(model, 'uint8') / 1e6:.2f} MB")
        source, target = bundle.settings.languages
        ways = (("float32", 1), ("float32", 4), ("uint8", 4))
        job = {"model": model["id"], "source": source, "target": target, "names": [], "texts": texts}
        jobs = [{**job, "numbers": numbers, "beam": beam} for numbers, beam in ways]
        answers = {Path(browser).name: run_jobs(page, jobs, browser, 3600) for browser in browsers(args.browser)}
    with Translator.load(args.bundle, engine="torch") as translator:
        for at, (numbers, beam) in enumerate(ways):
            search = plain_search(bundle.settings.search.changed(beam=beam, nbest=1))
            ours = [each.text for each in translator.translate(texts, search, guards=False)]
            for name, answer in answers.items():
                theirs, timing = [each["text"] for each in answer["results"][at]], answer["timings"][at]
                same = sum(a == b for a, b in zip(ours, theirs, strict=True))
                line = (
                    f"{name}, {numbers}, beam {beam}: {same} of {len(texts)} as torch, {len(texts) / timing['seconds']:.1f} sentences/s, "
                )
                print(line + f"ready in {timing['ready']:.2f} s")
                if args.references:
                    wanted = [read_lines(args.references)[: len(texts)]]
                    scores = [CHRF().corpus_score(made, wanted).score for made in (theirs, ours)]
                    print(f"  chrF {scores[0]:.2f}, torch float32 {scores[1]:.2f}")


def sizes(_: argparse.Namespace) -> None:
    limelight.interop.web.export.find_browsers = list  # what was never trained has no translations to compare
    with tempfile.TemporaryDirectory() as work:
        page = Path(work, "page")
        export_web(read(untrained(Path(work, "small"))), page)
        model = json.loads((page / "models.json").read_bytes())["models"][0]
        shell = [page / name for name in ("index.html", "worker.js", "ort.wasm", "models.json")]
        place = page / "models" / model["id"]
        own = [place / name for name in ("config.json", *model["pieces"], *model["graphs"]["uint8"])]
        packed = {path.name: len(gzip.compress(path.read_bytes(), 9)) for path in (*shell, *own)}
        print(f"model, uint8: {size_of(model, 'uint8') / 1e6:.2f} MB, {sum(packed[path.name] for path in own) / 1e6:.2f} compressed")
        print(f"first visit, compressed: {sum(packed.values()) / 1e6:.2f} MB")


def untrained(folder: Path) -> Path:
    """A bundle of the preset `small` with pieces of FLORES, as large as a trained one."""
    pieces = learn(lines_in_ten_scripts()[: LINES * len(SCRIPTS)], PieceSettings(size=8000))
    tokenizer = Tokenizer(pieces)
    config = ModelConfig.preset("small", tokenizer.size)
    search = SearchSettings(max_ratio=1.0, max_extra=3)  # it does not know when to end
    write(folder, BundleSettings(languages=("en", "de"), model=config, search=search), Transformer(config).state_dict(), pieces)
    return folder


def visit(args: argparse.Namespace) -> None:
    for browser in browsers(args.browser):
        print(json.dumps(visit_page(args.bundle, args.sentence, browser, args.pictures), indent=1))


def visit_page(bundle: Path, sentence: str, browser: str, pictures: Path | None = None) -> dict[str, Any]:
    """What web/measure/local.mjs found, which drives Chromium by playwright, or web_firefox.py."""
    with tempfile.TemporaryDirectory() as work, Translator.load(bundle, engine="torch") as translator:
        page, single = Path(work, "page"), Path(work, "one.html")
        export_web(read(bundle), page)
        export_web(read(bundle), single, single_file=True)
        wanted = translator.translate([sentence])[0].text
        if "firefox" in Path(browser).name:
            return web_firefox.visit(browser, page, single, sentence, wanted, pictures)
        command = ["node", "measure/local.mjs", str(page), str(single), sentence, wanted, *([str(pictures)] if pictures else [])]
        shown = {**os.environ, "CHROMIUM": browser}
        done = subprocess.run(command, cwd=ROOT / "web", capture_output=True, text=True, check=True, env=shown)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def size_of(model: dict[str, Any], numbers: str) -> int:
    return sum(model["files"][name]["bytes"] for name in model["graphs"][numbers])


def read_lines(path: Path) -> list[str]:
    content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return content.decode().removesuffix("\n").split("\n")


def browsers(named: Sequence[str] | None) -> list[str]:
    """By their names on the PATH; else the one that is found there."""
    found = [shutil.which(name) for name in named] if named else (find_browsers() or [None])[:1]
    there = [path for path in found if path is not None]
    if len(there) < len(found):
        raise SystemExit(f"not all of {', '.join(named or ['Chromium', 'Firefox'])} are on the PATH")
    return there


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--browser", action="append", help="its name on the PATH; Chromium if there is one")
    ways = parser.add_subparsers(required=True)
    ways.add_parser("ids").set_defaults(work=ids)
    ways.add_parser("sizes").set_defaults(work=sizes)
    way = ways.add_parser("captions")
    way.add_argument("bundle", type=Path)
    way.add_argument("lines", type=Path)
    way.add_argument("--references", type=Path)
    way.add_argument("--most", type=int, help="lines; all unless told")
    way.set_defaults(work=captions)
    way = ways.add_parser("visit")
    way.add_argument("bundle", type=Path)
    way.add_argument("sentence")
    way.add_argument("pictures", type=Path, nargs="?")
    way.set_defaults(work=visit)
    args = parser.parse_args()
    args.work(args)


if __name__ == "__main__":
    main()
