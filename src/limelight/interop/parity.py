"""Two engines translate the same sentences, and the figures decide whether they translate alike."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import numpy as np
from pydantic import Field
from sacrebleu.metrics.chrf import CHRF

from limelight.bundle import Bundle, BundleSettings
from limelight.config import Settings
from limelight.corpus.feeding.shards import PreparedCorpus
from limelight.corpus.feeding.tagging import Tagger
from limelight.decoding.config import SearchSettings
from limelight.engines.engine import Engine
from limelight.errors import DataError, LimelightError
from limelight.translator.translate import Translator
from limelight.translator.translation import Translation

PROBES = 200
MADE_UP = 64  # sentences of random pieces, when there is no text at hand
# Of the translations must be the very same in float32; in other numbers roundings change some. Of nonsense a model is never sure.
LEAST_SAME, LEAST_SAME_MADE_UP = 0.99, 0.9
GIVEN, VALIDATION, NONSENSE = "given", "validation set of the run", "made up of pieces"
MOST_VIEWS = 8  # directions that are compared, and names
LEAST_CHRF = 90.0  # of the other engine's translations against ours
TRY = "a model that has learnt little is never sure: train it longer; else report it with these figures"
MOST_APART = 1e-3  # between the scores of the same translation, in float32


class Parity(Settings):
    engine: str
    numbers: str = Field(description="What the other engine computes in.")
    probe: str = Field(description="Where the sentences come from.")
    sentences: int = Field(ge=1)
    same: float = Field(ge=0, le=1, description="Share of translations that are the same, letter by letter.")
    chrf: float = Field(description="chrF of its translations against ours: 100 is the same.")
    score_apart: float = Field(description="Largest difference between the scores of the same translation.")

    def problems(self) -> list[str]:
        found, exact = [], self.numbers == "float32"
        least = LEAST_SAME_MADE_UP if self.probe == NONSENSE else LEAST_SAME
        if exact and self.same < least:
            found.append(f"{self.same:.1%} of {self.sentences} translations are the same, and {least:.0%} must be")
        if exact and self.score_apart > MOST_APART:
            found.append(f"scores of the same translation differ by {self.score_apart:.1e}, at most {MOST_APART:.0e} may")
        if self.chrf < LEAST_CHRF and not (exact and self.probe == NONSENSE):
            found.append(f"chrF against our own translations is {self.chrf:.1f}, and must be {LEAST_CHRF:.0f} or more")
        return found

    @property
    def advice(self) -> str:
        """What to do about problems. Of made-up sentences no model is sure, so near ties fall otherwise: real ones decide."""
        probe = ["judge it by real text with --probe FILE, lines of the source"] if self.probe == NONSENSE else []
        numbers = ["try --quantize float32"] if self.numbers != "float32" else []
        return f"compared: {self.sentences} sentences, {self.probe}; {', '.join([*probe, *numbers]) or TRY}"


@dataclass(frozen=True)
class ParityProbes:
    texts: list[str]
    origin: str
    directions: list[tuple[str, str]] | None = None

    def share_out(self, translator: Translator) -> list[tuple[Translator, list[int]]]:
        """Views of a translator, and which of the probes each translates: the directions of a model in turn, and its names."""
        tags, usual = translator.settings.tags, translator.directions[0]
        if tags is None:
            return [(translator, list(range(len(self.texts))))]
        # Sentences that were given are in the usual language.
        able = [each for each in translator.directions if self.origin == NONSENSE or each[0] == usual[0]]
        some = [able[at * len(able) // MOST_VIEWS] for at in range(MOST_VIEWS)] if len(able) > MOST_VIEWS else able
        known = self.directions or [some[at % len(some)] for at in range(len(self.texts))]
        names = [(), *((name,) for name in list(tags.names)[:MOST_VIEWS])]
        seen, places = Counter[tuple[str, str]](), dict[tuple[tuple[str, str], tuple[str, ...]], list[int]]()
        for at, direction in enumerate(known):
            places.setdefault((direction, names[seen[direction] % len(names)]), []).append(at)
            seen[direction] += 1
        return [(translator.towards(target, source, told), some) for ((source, target), told), some in places.items()]


def plain_search(search: SearchSettings) -> SearchSettings:
    """The search itself, or the beam that is nearest to it where other engines lack it."""
    return search.changed(
        coverage_penalty=0.0,
        groups=1,
        sampling=None,
        mbr_samples=None,
        patience=search.patience or 1.0,
        nbest=min(search.nbest, search.beam),
    )


def translate_probes(bundle: Bundle, engine: Engine, probes: ParityProbes) -> list[Translation]:
    """Translate the probes by the bundle's own search, or by a beam where that is one which other engines lack."""
    plain = plain_search(bundle.settings.search)
    translator = Translator(engine, bundle.settings, bundle.source_tokenizer, bundle.target_tokenizer)
    found = {
        at: made
        for view, places in probes.share_out(translator)
        for at, made in zip(places, view.translate([probes.texts[at] for at in places], plain, guards=False), strict=True)
    }
    return [found[at] for at in range(len(probes.texts))]


def compare(ours: Sequence[Translation], theirs: Sequence[Translation], engine: str, numbers: str, probe: str) -> Parity:
    equal = [(a, b) for a, b in zip(ours, theirs, strict=True) if a.text == b.text]
    found, wanted = [b.text for b in theirs], [a.text for a in ours]
    return Parity(
        engine=engine,
        numbers=numbers,
        probe=probe,
        sentences=len(ours),
        same=len(equal) / len(ours),
        chrf=100.0 if found == wanted else CHRF().corpus_score(found, [wanted]).score,  # nothing at all would have 0
        score_apart=max((abs(a.score - b.score) for a, b in equal), default=0.0),
    )


def find_probes(bundle: Bundle, given: Sequence[str] | None) -> ParityProbes:
    """Sentences to compare with: those given, else of the validation set of the run that the bundle lies in, else made up of pieces."""
    if given is not None:
        texts = [text for text in given if text.strip()][:PROBES]
        if not texts:
            raise DataError("there is no sentence to compare the engines with; give a file with some lines of the source")
        return ParityProbes(texts, GIVEN)
    prepared = bundle.folder.parent / "prepared"
    if bundle.folder.name == "bundle" and prepared.is_dir():
        try:
            if (probes := _validation(prepared, bundle.settings)).texts:
                return probes
        except LimelightError:  # gone, or of another version: the bundle can be compared all the same
            pass
    return ParityProbes(_invent_texts(bundle), NONSENSE)


def _validation(prepared: Path, settings: BundleSettings) -> ParityProbes:
    """Evenly over the whole set, each in its own direction."""
    pairs = PreparedCorpus.open(prepared).split("valid")
    chosen = np.unique(np.linspace(0, pairs.fed - 1, min(PROBES, pairs.fed)).astype(np.int64))
    sources = pairs.texts(chosen)[0].to_pylist()
    tagger = Tagger(pairs, 0, 0.0)
    directions = [tagger.directions[way] for way in tagger.directions_of(chosen)]
    spoken = [at for at, text in enumerate(sources) if text.strip() and directions[at] in settings.directions]
    return ParityProbes([sources[at] for at in spoken], VALIDATION, [directions[at] for at in spoken])


def _invent_texts(bundle: Bundle) -> list[str]:
    tokenizer, draw = bundle.source_tokenizer, Random(0)
    plain = [i for i in range(tokenizer.size) if i not in tokenizer.controls()]
    longest = min(24, bundle.settings.model.max_length // 2)
    rows = [draw.choices(plain, k=draw.randint(2, max(2, longest))) for _ in range(MADE_UP)]
    return [text for text in tokenizer.decode(rows) if text.strip()]
