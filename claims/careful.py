"""What the docs state about careful text: placeholders and tags come back, terms occur, numbers stay, capitals and typos do not break a
translation, a confidence of 0.8 is right in 8 of 10 cases, and documents keep their structure.

make claim-careful              under a minute on 2 cores: a model of random weights, which only constraints can hold to a promise
make claim-careful FULL=1       all of it, with two translators trained for it (an hour), or those that LIMELIGHT_SOFTWARE and
                                LIMELIGHT_CAPTIONS name: one of software strings, one of Multi30k's captions, both English to German

It also runs without torch; then LIMELIGHT_RANDOM names the random weights, as `random_bundle` of tests/translator writes them.

Reads the software strings, Multi30k and the WMT25 terminology sentences from the folder that LIMELIGHT_DATA names.
"""

import gzip
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from importlib import import_module
from itertools import islice
from pathlib import Path
from random import Random

import numpy as np
import sacrebleu

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / place) for place in ("claims", "tests", "tests/translator", "tests/documents")]

import careful_sentences as careful
import judged_by_msgfmt as msgfmt
import kept_structure
import real_files

from claim import Claims, run
from limelight.decoding.config import SearchSettings
from limelight.decoding.guards import judge
from limelight.documents.document import translate_document
from limelight.evaluation.confidence.calibration import right_words
from limelight.evaluation.confidence.reliability import bins, compute_ece
from limelight.text.careful.glossary import Glossary, is_met
from limelight.text.careful.protect import find, text_faults
from limelight.translator import Translation, Translator

DATA = Path(os.environ.get("LIMELIGHT_DATA", "."))
L10N, CAPTIONS, TERMS = DATA / "l10n", DATA / "multi30k", DATA / "wmt25-terminology" / "test.en-de.jsonl.gz"
GREEDY = SearchSettings(beam=1)
FAILED = {"loop", "empty", "too_long", "too_short"}  # of the guards: a translation that is none


def lines(path: Path) -> list[str]:
    return gzip.decompress(path.read_bytes()).decode().split("\n")[:-1]


def placeholders(claims: Claims, translator: Translator, count: int, whose: str, least: float = 1.0) -> None:
    """AT-22. Random weights write numbers of their own now and then, which no mark can forbid; then it is said."""
    sentences = careful.templated(count)
    made = translator.translate([each.text for each in sentences])
    silent = sum(
        bool(careful.lost(each, one.text)) and one.protected and not warned(one) for each, one in zip(sentences, made, strict=True)
    )
    held = sum(not careful.lost(each, one.text) for each, one in zip(sentences, made, strict=True))
    claims.at_least(f"{whose}: sentences with all they must keep, of {count}", held, least * count)
    claims.at_most(f"{whose}: lost something and did not say so", silent, 0)
    unprotected = translator.translate([each.text for each in sentences], protect=False)
    of, kept = Counter[str](), Counter[str]()
    for each, one in zip(sentences, unprotected, strict=True):
        wrong = careful.lost(each, one.text)
        of.update(each.kinds)
        kept.update(kind for kind in each.kinds if kind not in wrong)
    for kind in of:
        claims.note(f"{whose}, without protection: {kind} kept, %", 100 * kept[kind] / of[kind])
    for broken in careful.BROKEN_HTML:
        translator.translate([broken])


def warned(one: Translation) -> bool:
    return any(notice.code in ("unprotected", "numbers") for notice in one.warnings)


def loops(claims: Claims, translator: Translator, sentences: Sequence[str]) -> None:
    """AT-17 c."""
    odd = careful.regression_inputs(sentences)
    made = translator.translate(odd)
    looping = sum(any(notice.code == "loop" for notice in one.warnings) for one in made)
    claims.at_most(f"odd inputs that end in a loop, of {len(odd)}", looping, 0)
    random, flips, tried = Random(8), 0, 0
    chosen = list(sentences[:200])
    sound = [not failed(text, one) for text, one in zip(chosen, translator.translate(chosen), strict=True)]
    for change in careful.PERTURBATIONS.values():
        changed = [change(text, random) for text in chosen]
        after = zip(changed, translator.translate(changed), sound, strict=True)
        flips += sum(before and failed(text, one) for text, one, before in after)
        tried += sum(sound)
    claims.at_most(f"changes of a sentence that break its translation, % of {tried}", 100 * flips / max(1, tried), 1)


def failed(text: str, one: Translation) -> bool:
    return one.degenerate or any(notice.code in FAILED for notice in judge(text, one.text))


def software_strings(claims: Claims, translator: Translator) -> None:
    sources, references = lines(L10N / "test.en-de.en.gz"), lines(L10N / "test.en-de.de.gz")
    with_spans = [at for at, text in enumerate(sources) if find(text)]
    made = translator.translate(sources)
    faults = sum(text_faults(sources[at], made[at].text) is not None for at in with_spans)
    claims.at_most(f"software strings that lost a placeholder or tag, of {len(with_spans)}", faults, 0)
    silent = sum(made[at].protected for at in with_spans if text_faults(sources[at], made[at].text))
    claims.at_most("... and say that they are protected", silent, 0)
    bare = translator.translate(sources, protect=False)
    broken = sum(text_faults(sources[at], bare[at].text) is not None for at in with_spans)
    claims.note("... without protection", broken)
    texts = {"protected": [one.text for one in made], "bare": [one.text for one in bare]}
    scores = {name: sacrebleu.corpus_bleu(some, [references]).score for name, some in texts.items()}
    claims.note("BLEU on software strings, without protection", scores["bare"])
    claims.at_least("BLEU on software strings, with protection", scores["protected"], scores["bare"])
    again = sum(any(notice.code == "redecoded" for notice in one.warnings) for one in made)
    claims.note("searched a second time, % of all", 100 * again / len(made))


def glossaries(claims: Claims, translator: Translator) -> None:
    rows = [json.loads(line) for line in lines(TERMS)]
    sources, references = [row["en"] for row in rows], [row["de"] for row in rows]
    each = [Glossary.of(row["proper"]) for row in rows]
    terms(claims, translator, "WMT25 terms", sources, references, each)
    glossary = Glossary.load(L10N / "glossary.en-de.tsv")
    pairs = list(zip(lines(L10N / "test.en-de.en.gz"), lines(L10N / "test.en-de.de.gz"), strict=True))
    # Terms that the people who translated used too: where they did not, another sense was meant.
    used = [(s, t) for s, t in pairs if (found := glossary.find(s)) and all(is_met(term, t) for term in found)]
    terms(claims, translator, "software terms", *map(list, zip(*used, strict=True)), [glossary] * len(used))


def terms(
    claims: Claims,
    translator: Translator,
    what: str,
    sources: list[str],
    references: list[str],
    each: list[Glossary],
) -> None:
    held = {}
    for name, given in (("without", None), ("with", each)):
        made = translator.translate(sources, glossary=given)
        wanted = [(t, one.text) for g, s, one in zip(each, sources, made, strict=True) for t in g.find(s)]
        held[name] = 100 * sum(is_met(term, text) for term, text in wanted) / len(wanted)
        chrf = sacrebleu.corpus_chrf([one.text for one in made], [references]).score
        claims.note(f"{what}, {name} glossary: chrF", chrf)
    claims.note(f"{what}, without glossary: used, % of {len(wanted)}", held["without"])
    claims.at_least(f"{what}, with glossary: used, %", held["with"], 95)


def capitals(claims: Claims, translator: Translator) -> None:
    sources, references = lines(CAPTIONS / "test_2016_flickr.en.gz"), lines(CAPTIONS / "test_2016_flickr.de.gz")
    found = []
    for texts in (sources, [text.upper() for text in sources]):
        made = [one.text for one in translator.translate(texts)]
        found.append(sacrebleu.corpus_bleu(made, [references], lowercase=True).score)
    claims.note("BLEU without case, captions", found[0])
    claims.note("BLEU without case, captions in capitals", found[1])
    claims.at_most("lost by capitals", found[0] - found[1], 3)


def confidence(claims: Claims, translator: Translator) -> None:
    """Fitted at the end of training on validation text; looked at on test text."""
    sources, references = lines(CAPTIONS / "test_2016_flickr.en.gz"), lines(CAPTIONS / "test_2016_flickr.de.gz")
    sure, right = list[float](), list[bool]()
    for one, reference in zip(translator.translate(sources, probabilities=True), references, strict=True):
        told = zip(one.words, right_words([word.text for word in one.words], reference), strict=True)
        for word, is_right in told:
            if word.confidence is not None:
                sure.append(word.confidence)
                right.append(is_right)
    found = bins(np.array(sure), np.array(right, np.float64))
    claims.at_most("confidence of words: expected calibration error", compute_ece(found), 0.05)


def documents(claims: Claims, translator: Translator, most: int) -> None:
    files = real_files.real_files(DATA)[:most]
    kept = 0
    for file in files:
        done = translate_document(file.data, file.kind, ("en", "de"), lambda some: translator.translate(some, GREEDY, segment=True))
        kept += kept_structure.difference(file.kind, file.data, done.data) is None
    claims.at_least(f"documents whose structure is the same, of {len(files)}", kept, len(files))
    claims.at_least("documents", len(files), min(most, 50))


def catalogues(claims: Claims, translator: Translator, most: int, whose: str) -> None:
    """The judge is what people run: `msgfmt -c` on a catalogue of real strings and of wicked ones."""
    entries = [*msgfmt.wicked(), *islice(msgfmt.real(DATA), most)]
    done = translate_document(msgfmt.catalogue(entries), "po", ("en", "de"), lambda some: translator.translate(some, GREEDY, segment=True))
    with tempfile.TemporaryDirectory() as place:
        said = msgfmt.complaints(done.data, Path(place))
    claims.at_most(f"{whose}: what msgfmt -c holds against {len(entries)} translated entries", len(said), 0)
    refused = sum(remark.code == "structure" for remark in done.warnings)
    claims.at_most("... and entries left as they were, since it would have, %", 100 * refused / len(entries), 5)


def trained(work: Path, name: str, *words: str) -> Path:
    command = [sys.executable, "-m", "limelight", "train", *words, "-o", str(work / name), "--budget", "30m", "-q"]
    subprocess.run(command, check=True)
    return work / name


def software_translator(work: Path) -> Path:
    sets = (("valid", "dev"), ("test", "test"))
    sides = [f"--{what}={L10N / f'{name}.en-de.{side}.gz'}" for what, name in sets for side in ("en", "de")]
    given = [str(L10N / "tm.en-de.jsonl.gz"), str(L10N / "docs.en-de.jsonl.gz"), "--source", "en", "--target", "de"]
    return trained(work, "software", *given, *sides)


def caption_translator(work: Path) -> Path:
    return trained(work, "captions", *(str(CAPTIONS / f"train.{side}.gz") for side in ("en", "de")))


def untaught() -> Translator:
    given = os.environ.get("LIMELIGHT_RANDOM")
    made: Translator = Translator.load(given) if given else import_module("random_weights").random_translator()  # which takes torch
    return made


def measure(claims: Claims, full: bool) -> None:
    with untaught() as nothing_learnt:
        placeholders(claims, nothing_learnt, 1000 if full else 70, "random weights", least=0.9)
        documents(claims, nothing_learnt, 10_000 if full else 12)
        catalogues(claims, nothing_learnt, 600 if full else 20, "random weights")
    if not full:
        return
    with tempfile.TemporaryDirectory() as place:
        folders = [os.environ.get(name) for name in ("LIMELIGHT_SOFTWARE", "LIMELIGHT_CAPTIONS")]
        with Translator.load(folders[0] or software_translator(Path(place))) as translator:
            placeholders(claims, translator, 1000, "software strings")
            software_strings(claims, translator)
            glossaries(claims, translator)
            documents(claims, translator, 10_000)
            catalogues(claims, translator, 1000, "software strings")
        with Translator.load(folders[1] or caption_translator(Path(place))) as translator:
            loops(claims, translator, lines(CAPTIONS / "test_2016_flickr.en.gz"))
            capitals(claims, translator)
            confidence(claims, translator)


if __name__ == "__main__":
    run(measure, __doc__)
