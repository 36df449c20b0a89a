"""What the docs state about other people's engines and libraries: the same translations in CTranslate2, the same logits and beams in
Hugging Face, a real foreign model read from its tensors, and what our translator costs around the engine.

make claim-interop              under a minute on 2 cores: a sample of the evidence, on small models
make claim-interop FULL=1       all of it, with a translator trained for it, ONNX, tokenizers in every script: about half an hour

The real model, Multi30k and the lines in many scripts lie in the folder that LIMELIGHT_DATA names.
"""

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import sacrebleu

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / place) for place in ("benchmarks", "claims", "tests", "tests/engines", "tests/interop")]

import test_ctranslate2_engine as matrix
import test_ctranslate2_export as numbers
import test_huggingface_export as exports
import test_huggingface_import as imports
from batch_invariance import random_model, random_sentences

import engines as speed
from claim import Claims, run
from limelight.bundle import read
from limelight.evaluation.inputs import read_parallel
from limelight.interop.ctranslate2.export import export
from limelight.interop.huggingface.export import export_folder
from limelight.interop.huggingface.load import import_folder
from limelight.translator import Translator

DATA = Path(os.environ.get("LIMELIGHT_DATA", "."))
MULTI30K = [str(DATA / "multi30k" / f"test_2016_flickr.{side}.gz") for side in ("en", "de")]
SHORT = ("pre-norm", "post-norm", "learned", "rotary", "swiglu", "grouped heads", "deep encoder, shallow decoder")


def engine_computes_the_same(claims: Claims, work: Path, full: bool) -> None:
    """AT-15: every kind of model, weights copied."""
    worst = 0.0
    kinds = list(matrix.VARIANTS) if full else SHORT
    for name in kinds:
        model = random_model(3, **matrix.VARIANTS[name])
        ours, theirs = matrix.both(model, _new(work / "matrix"))
        ids = [request.source for request in random_sentences(6, seed=5)]
        pairs = zip(ours.score(ids, ids[::-1]), theirs.score(ids, ids[::-1]), strict=True)
        worst = max(worst, *(float(np.abs(np.array(a) - b).max()) for a, b in pairs))
    claims.at_most(f"CTranslate2, {len(kinds)} kinds of models: log-probabilities apart", worst, 1e-3)


def engine_translates_the_same(claims: Claims, folder: Path, texts: list[str], references: list[str] | None) -> None:
    """AT-15 with a trained model."""
    bundle = read(folder)
    made = export(bundle, "float32", texts[:100])
    claims.at_most("export float32: scores apart on its own probes", made.score_apart, 1e-3)
    with Translator.load(folder, engine="torch") as ours, Translator.load(folder, engine="ctranslate2") as theirs:
        mine, other = (translator.translate(texts, guards=False) for translator in (ours, theirs))
    same = [(a, b) for a, b in zip(mine, other, strict=True) if a.text == b.text]
    what = f"CTranslate2 float32, {len(texts)} sentences"
    claims.at_least(f"{what}: the same, %", 100 * len(same) / len(texts), 99.5)
    claims.at_most(f"{what}: scores apart", max(abs(a.score - b.score) for a, b in same), 1e-3)
    export(read(folder), "int8", texts[:100])
    with Translator.load(folder, engine="ctranslate2") as translator:
        small = translator.translate(texts, guards=False)
    claims.note("CTranslate2 int8: the same, %", 100 * np.mean([a.text == b.text for a, b in zip(mine, small, strict=True)]))
    if references is not None:
        scores = [sacrebleu.corpus_chrf([one.text for one in some], [references]).score for some in (mine, small)]
        claims.at_most("CTranslate2 int8: chrF lost", scores[0] - scores[1], 0.3)


def around_the_engine(claims: Claims, folder: Path, texts: list[str]) -> None:
    """What a sentence costs beside the engine: normalizing, pieces, sorting, text, guards."""
    with Translator.load(folder, engine="ctranslate2", threads=1) as translator:
        search = translator.settings.search.changed(beam=1)
        translator.translate(texts, search)
        requests = [sentence.request for sentence in translator.plan(texts).asked]
        whole, inside = [], []
        for _ in range(5):
            began = time.perf_counter()
            translator.translate(texts, search)
            whole.append(time.perf_counter() - began)
            began = time.perf_counter()
            translator.engine.search(requests, search)
            inside.append(time.perf_counter() - began)
    spent = statistics.median(a - b for a, b in zip(whole, inside, strict=True))
    claims.at_most("our part of a sentence beside the engine, ms", 1000 * spent / len(texts), 1.0)


def hugging_face(claims: Claims, work: Path, full: bool) -> None:
    kinds = list(imports.MODELS) if full else ["marian", "marian-separate-untied", "m2m100", "nllb", "pegasus"]
    worst = 0.0
    for name in kinds:
        theirs = imports.made(name, work / name)
        worst = max(worst, imports.apart(theirs, imports.imported(work / name).folder))
    claims.at_most(f"Hugging Face, {len(kinds)} models imported: logits apart", worst, 1e-5)
    kinds, wrong = list(exports.OURS) if full else ["pegasus", "marian", "m2m100"], 0
    for name in kinds:
        bundle = exports.bundle_of(_gone(work / "b"), **exports.OURS[name])
        export_folder(bundle, _gone(work / "hf"))
        import_folder(work / "hf", _gone(work / "again"))
        wrong += not exports.same_files(work / "b", work / "again")
    claims.at_most(f"exported and imported again, {len(kinds)} models: not bit for bit", wrong, 0)


def tested(claims: Claims, name: str, *words: str) -> None:
    command, thousand = (
        [sys.executable, "-m", "pytest", "-q", *words],
        {**os.environ, "LIMELIGHT_MUTANTS": "1000", "LIMELIGHT_LINES": "10000"},
    )
    done = subprocess.run(command, cwd=ROOT, env=thousand, capture_output=True, check=False)
    claims.ended_well(f"{name}: failures", done.returncode)


def trained(work: Path) -> Path:
    """Three minutes of training on real captions."""
    sides = [str(DATA / "multi30k" / f"train.{side}.gz") for side in ("en", "de")]
    command = [sys.executable, "-m", "limelight", "train", *sides, "-o", str(work / "en-de"), "--budget", "5m", "-q"]
    subprocess.run(command, check=True)
    return work / "en-de"


def fast(claims: Claims, folder: Path, work: Path) -> None:
    """Against the bare engine, file in and file out."""
    names = ["torch float32", "torch bfloat16"]
    names += [f"{kind}ctranslate2 {n}" for n in ("float32", "bfloat16", "int8") for kind in ("", "bare ")]
    asked = speed.parser().parse_args([str(folder), "--lines", MULTI30K[0], "--references", MULTI30K[1], "--contestants", ",".join(names)])
    found = speed.measure(asked, _new(work / "speed"))
    sys.stdout.write(speed.table(found) + "\n")
    for name in ("ctranslate2 float32", "ctranslate2 int8"):
        ratio, slower = speed.against_bare(found, name)
        claims.at_least(f"{name}: of the bare engine's speed", ratio, 0.95)
        claims.at_most(f"{name}: one sentence, times the bare engine's", slower, 1.15)


def measure(claims: Claims, full: bool) -> None:
    with tempfile.TemporaryDirectory() as place:
        work = Path(place)
        engine_computes_the_same(claims, work, full)
        hugging_face(claims, work, full)
        folder = Path(shutil.copytree(numbers.STORED, work / "numbers"))
        engine_translates_the_same(claims, folder, numbers.NUMBERS, None)
        around_the_engine(claims, folder, numbers.NUMBERS)
        if (DATA / "weights").is_dir():
            tested(
                claims,
                "a real model of somebody else, 200 names",
                "tests/interop/test_ctranslate2_import.py",
                "-m",
                "",
                "-k",
                "real",
            )
        if full:
            real, (sources, targets) = trained(work), read_parallel(MULTI30K)
            engine_translates_the_same(claims, real, sources, targets)
            fast(claims, real, work)
            tested(claims, "the rest of interop", "tests/interop", "-m", "slow or reference or not slow")


def _new(folder: Path) -> Path:
    _gone(folder).mkdir()
    return folder


def _gone(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    return folder


if __name__ == "__main__":
    run(measure, __doc__)
