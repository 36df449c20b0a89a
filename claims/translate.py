"""What the docs state about translating: a search that finds, batches that do not matter, terms that occur, bundles that are whole, scores
that were recorded, pipes as Unix users expect them, and speed.

make claim-translate            under a minute on 2 cores: a sample of the evidence, and the speed of `small` on one batch
make claim-translate FULL=1     all of it, about an hour

Reads Multi30k, the WMT25 terminology sentences and outputs of real systems from the folder that LIMELIGHT_DATA names.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from itertools import islice
from pathlib import Path
from random import Random

ROOT = Path(__file__).parents[1]
PLACES = (
    "benchmarks",
    "claims",
    "tests",
    *(f"tests/{room}" for room in ("decoding", "engines", "translator", "evaluation", "cli", "corpus")),
)
sys.path[:0] = [str(ROOT / place) for place in PLACES]

import batch_invariance
import prepare_command
import stored_outputs
import test_exhaustive
import test_search_degenerate
import test_search_terminology
import test_stored_bundle_translates
import test_system_outputs
import test_translate_command
from slow_search import gnmt
from table_models import find, sentence

import bundle_damage
import translate as speed
from claim import Claims, run
from limelight import runtime
from limelight.bundle import read
from limelight.bundle.weights import load_weights
from limelight.engines.torch import TorchEngine
from limelight.errors import LimelightError, ModelFileError
from limelight.evaluation.inputs import read_parallel
from limelight.evaluation.metrics.compare import compare
from limelight.evaluation.metrics.metrics import count
from limelight.model.config import ModelConfig
from limelight.translator import Translator

BUNDLE = ROOT / "tests" / "bundles" / "format-1"
# Times Hugging Face's `generate` in the same number format, at `small`, by beam: with room for a noisy machine below what the docs state.
BARS = {1: 1.3, 4: 1.9}


def fast(claims: Claims, full: bool) -> None:
    """Against `generate` as it is called, on all cores, and CTranslate2 with a worker for each core."""
    cores = runtime.choose_threads().value
    for size in ("small", "base") if full else ("small",):
        makers = speed.contestants(size, cores)
        if not full:
            makers = {name: makers[name] for name in (speed.OURS, speed.HUGGING_FACE, speed.CTRANSLATE2)}
        same(claims, size, full)
        started = speed.together(makers, cores)
        turns = [[4, 3, 2, 1, 0]] if full else [[3, 2]]
        for beam in (1, 4):
            found = speed.speeds(started, beam, 3 if full else 1, turns, warm_up=turns if full else [[5]])
            pieces_per_second(claims, size, beam, found)
        for beam in (1, 4) if full else ():
            for name, seconds in speed.latencies(started, beam, rounds=1).items():
                for percent in (50, 95):
                    milliseconds = 1000 * speed.percentile(seconds, percent)
                    claims.note(f"{size}, beam {beam}, one sentence, {name}: ms, p{percent}", milliseconds)
        for contestant in started.values():
            contestant.stop()


def same(claims: Claims, size: str, full: bool) -> None:
    """Nothing is compared that is not the same model."""
    rows = 24 if full else 4
    works = [speed.Work(work.sources[:rows], work.lengths[:rows]) for work in speed.real_works()[:5:2]]
    claims.at_most(f"{size}: logits apart from Hugging Face's", speed.peers.logits_apart(size, works), 1e-4)
    claims.at_most(f"{size}: log-probabilities apart from CTranslate2's", speed.peers.scores_apart(size, works), 1e-4)
    if full:
        for name, share in speed.agreement(size, works, beam=1).items():
            claims.at_least(f"{size}: same pieces as {name}, greedy, %", 100 * share, 90)


def pieces_per_second(claims: Claims, size: str, beam: int, found: dict[str, list[float]]) -> None:
    for name, values in found.items():
        claims.note(f"{size}, beam {beam}, {name}: pieces/s", statistics.median(values))
    for other, bar in ((speed.HUGGING_FACE, BARS[beam]), (speed.CTRANSLATE2, 0.5)):
        times = speed.ratio(found, speed.OURS, other)
        what = f"{size}, beam {beam}: times {other}"
        if size == "small":
            claims.at_least(what, statistics.median(times), bar)
        else:
            claims.note(what, statistics.median(times))
        if len(times) > 1:
            claims.note(f"{what}, lowest round", min(times))
            claims.note(f"{what}, highest round", max(times))


def finds(claims: Claims, full: bool) -> None:
    """AT-14."""
    cases = [case for case in test_exhaustive.all_cases() if full or case.length <= 3]
    compared, wrong = test_exhaustive.mismatches(cases)
    claims.at_most(f"full beam against all translations, {compared} cases: misses", wrong, 0)
    compared, caught = test_exhaustive.mismatches([test_exhaustive.case("plain", 3, 4, 0.6)], lambda n: gnmt(0.6)(n + 1))
    claims.at_least("a length penalty off by one is caught, % (control)", 100 * caught / compared, 100)


def alone(claims: Claims, full: bool) -> None:
    """AT-16."""
    engine = TorchEngine(batch_invariance.random_model())
    sizes, orders = ((1, 2, 7, 32, 64), (0, 1, 2)) if full else ((7, 8), (0,))
    for beam in (1, 4):
        requests = batch_invariance.random_sentences(500 if full else 8)
        found = batch_invariance.agreement(engine, requests, sizes, orders, beam)
        what = f"beam {beam}: {found.sentences:,} translations in batches"
        claims.at_least(f"{what}, the same as alone, %", 100 * found.share, 99.9)
        claims.at_most(f"{what}, scores apart", found.furthest, 1e-4)


def degenerate(claims: Claims, full: bool) -> None:
    """AT-17 a and b."""
    answered = total = 0
    for settings in test_search_degenerate.WAYS.values():
        for bad in test_search_degenerate.BAD_ROWS.values():
            model = test_search_degenerate.spoiled(bad, lambda number, prefix: number != 100)
            outcomes = find(model, [sentence(number) for number in (100, 101, 102)], settings)
            total += len(outcomes)
            answered += [outcome.invalid_scores for outcome in outcomes] != [False, True, True]
    claims.at_most(f"scores that are no numbers, {total} sentences: wrong answers", answered, 0)
    test = test_stored_bundle_translates.test_odd_input_is_answered_in_two_seconds
    texts = next(mark.args[1] for mark in test.pytestmark if mark.args[0] == "text")
    right, slowest = 0, 0.0
    with Translator.load(BUNDLE, device="cpu") as translator:
        for text in texts:
            for search in (None, test_stored_bundle_translates.GREEDY) if full else (None,):
                began = time.perf_counter()
                with suppress(AssertionError, LimelightError):
                    test(translator, text, search)
                    right += 1
                slowest = max(slowest, time.perf_counter() - began)
    asked = len(texts) * (2 if full else 1)
    claims.at_least(f"odd inputs answered as documented, of {asked}", right, asked)
    claims.at_most("slowest of them, seconds", slowest, 2)


def required(claims: Claims, full: bool) -> None:
    terminology = test_search_terminology.terminology.__wrapped__()
    requests = terminology.requests[: 500 if full else 40]
    for width in (1, 4, 8) if full else (4,):
        outcomes = test_search_terminology.translate(terminology, width, requests)
        held = test_search_terminology.held(terminology, outcomes)
        claims.at_least(f"beam {width}: sentences with all their terms, of {len(requests)}", held, len(requests))
        pairs = [(request, outcome.hypotheses[0]) for request, outcome in zip(requests, outcomes, strict=True)]
        forced = (
            log_probs
            for at in range(0, len(pairs), test_search_terminology.BATCH)
            for log_probs in test_search_terminology.forced(terminology.model, pairs[at : at + test_search_terminology.BATCH])
        )
        apart = [
            abs(a - b)
            for (_, hypothesis), log_probs in zip(pairs, forced, strict=True)
            for a, b in zip(hypothesis.log_probs, log_probs, strict=True)
        ]
        claims.at_most(f"beam {width}: their scores apart from the model's own", max(apart), 1e-4)
    free = [test_search_terminology.Request(request.source) for request in requests]
    held = test_search_terminology.held(terminology, test_search_terminology.translate(terminology, 4, free))
    wanting = sum(not terms for terms in terminology.terms[: len(requests)])
    claims.at_most("without being required, % of them (control)", 100 * (held - wanting) / len(requests), 5)


def whole(claims: Claims, full: bool) -> None:
    """AT-03, the part about models."""
    with tempfile.TemporaryDirectory() as place:
        another = bundle_damage.make_another(BUNDLE, Path(place, "another"))
        made = refused = 0
        for damage in islice(bundle_damage.damages(BUNDLE, another, Path(place, "damaged")), 0, None, 1 if full else 7):
            made += 1
            try:
                read(damage.folder)
            except ModelFileError as error:
                refused += all(name in str(error) for name in damage.files)
        claims.at_least(f"damaged bundles refused by the name of the file, of {made}", refused, made)
        config = read(BUNDLE).settings.model
        flips = bundle_damage.flips(BUNDLE, Path(place, "damaged"), Random(0), [bundle_damage.WEIGHTS])
        flipped = [loads(damage.folder, config) for damage in islice(flips, 120 if full else 20)]
    claims.at_least("flipped weights that load where nothing is verified, % (control)", 100 * statistics.mean(flipped), 90)


def loads(folder: Path, config: ModelConfig) -> bool:
    try:
        return bool(load_weights(folder, config))
    except ModelFileError:
        return False


def scores(claims: Claims, full: bool) -> None:
    rows = [row for row in stored_outputs.rows() if abs(row.bleu - row.bleu_recorded) <= test_system_outputs.AGREES]
    for row in rows if full else [row for row in rows if row.test_set.startswith("flores")][:2]:
        apart = abs(test_system_outputs.bleu_of(row) - row.bleu_recorded)
        what = f"BLEU of {row.test_set} {row.direction} {row.system}, from recorded"
        claims.at_most(what, apart, test_system_outputs.AGREES)
    if full:
        claims.at_least("outputs whose recorded BLEU belongs to the stored text", len(rows), 18)
    systems, settings = ("bergamot-base-memory", "microsoft"), test_system_outputs.SETTINGS
    pair = [stored_outputs.row("flores200-devtest", "en-is", system) for system in systems]
    *texts, reference = read_parallel([*(each.output for each in pair), pair[0].reference])
    (found,) = compare(systems, *([count("bleu", text, [reference], settings)] for text in texts), settings)
    claims.at_least("the better of two real systems is named", found.better == "microsoft" and found.significant, 1)


def pipes(claims: Claims, full: bool) -> None:
    lines = test_translate_command.number_lines(400)
    given = "".join(f"{line}\n" for line in lines).encode()
    command, environment = test_translate_command.command("--beam", 1), prepare_command.environment()
    done = subprocess.run(command, input=given, capture_output=True, env=environment, check=True)
    found = done.stdout.decode().split("\n")[:-1]
    right = sum(a == test_translate_command.in_german(b) for a, b in zip(found, lines, strict=True))
    claims.at_least("lines in a pipe, translated and in order, of 400", right, 390)
    if full:
        peaks = [peak(lines * (count // 400)) for count in (20_000, 1_000_000)]
        claims.at_most("peak memory at 1 M lines against 20,000", peaks[1] / peaks[0], 1.2)


def peak(lines: list[str]) -> float:
    """Megabytes of the command for so many lines."""
    with tempfile.TemporaryDirectory() as place:
        given, told = Path(place, "lines"), Path(place, "peak")
        given.write_bytes("".join(f"{line}\n" for line in lines).encode())
        arguments = ["translate", BUNDLE, "--beam", 1, "-q", "-i", given, "-o", Path(place, "out"), told]
        call = [sys.executable, "-c", prepare_command.MEASURED, *map(str, arguments)]
        subprocess.run(call, check=True, env=prepare_command.environment())
        assert Path(place, "out").read_bytes().count(b"\n") == len(lines)
        return int(told.read_bytes()) / 1024


def measure(claims: Claims, full: bool) -> None:
    if not Path(os.environ.get("LIMELIGHT_DATA", ""), "system-outputs").is_dir():
        sys.exit("LIMELIGHT_DATA must name the folder with wmt25-terminology, system-outputs and their test sets")
    fast(claims, full)
    for part in (finds, alone, degenerate, required, whole, scores, pipes):
        part(claims, full)


if __name__ == "__main__":
    run(measure, __doc__)
