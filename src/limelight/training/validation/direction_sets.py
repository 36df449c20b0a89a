"""A `DirectionSet` is the held-out text of one direction. Validation and test ask each direction for itself."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np

from limelight.corpus.feeding.shards import Pairs, PreparedCorpus
from limelight.corpus.feeding.tagging import Tagger
from limelight.corpus.manifest import CorpusManifest
from limelight.evaluation.config import InferenceOptions, Speed
from limelight.evaluation.translating import TranslatedSet, translate_set
from limelight.text.languages import Direction
from limelight.translator.confidence import Word

FEWEST: Final = 10  # sentences that a direction is measured on


@dataclass(frozen=True)
class DirectionSet:
    direction: Direction
    sources: list[str]
    references: list[str]
    names: list[tuple[str, ...]]
    trained: bool = True

    @property
    def title(self) -> str:
        return "-".join(self.direction)

    def places_by_names(self) -> dict[tuple[str, ...], list[int]]:
        places: dict[tuple[str, ...], list[int]] = {}
        for place, names in enumerate(self.names):
            places.setdefault(names, []).append(place)
        return places


def sample_directions(pairs: Pairs, most: int) -> list[DirectionSet]:
    """At most so many sentences, of each direction as many, evenly over its whole set: a book begins with its title page."""
    manifest, tagger = pairs.prepared.manifest, Tagger(pairs, 0, 0.0)
    tags = manifest.tag_set.names
    every = np.arange(pairs.fed, dtype=np.int64)
    ways, names = tagger.directions_of(every), tagger.names_of(every)
    rows = {direction: np.flatnonzero(ways == way) for way, direction in enumerate(tagger.directions)}
    filled = [direction for direction in manifest.directions if len(rows[direction])]
    found = []
    for direction in filled:
        mine = rows[direction]
        count = len(mine) if most >= pairs.fed else min(len(mine), max(1, most // len(filled)))
        chosen = mine[np.unique(np.linspace(0, len(mine) - 1, count).astype(np.int64))]
        source, target = pairs.texts(chosen)
        told = [tuple(name for bit, name in enumerate(tags) if int(bits) >> bit & 1) for bits in names[chosen]]
        found.append(DirectionSet(direction, source.to_pylist(), target.to_pylist(), told))
    return found


def count_test(prepared: PreparedCorpus) -> int:
    return prepared.split("test").fed if "test" in prepared.manifest.splits else 0


def list_zero_shot(manifest: CorpusManifest) -> list[Direction]:
    """Directions between known languages that were never trained."""
    sources = dict.fromkeys(source for source, _ in manifest.directions)
    pairs = [(source, target) for source in sources for target in manifest.tag_set.languages if source != target]
    return [pair for pair in pairs if pair not in manifest.directions]


def pair_zero_shot(pairs: Pairs, most: int) -> list[DirectionSet]:
    """At most `most` sentences of each: equal texts in the language that all pairs share lead from one language to another."""
    manifest = pairs.prepared.manifest
    wanted = list_zero_shot(manifest)
    if not wanted or not pairs.rows:
        return []
    every = np.arange(pairs.rows, dtype=np.int64)
    languages = [manifest.stored[corpus] for corpus in pairs.corpora_of(every)]
    meanings: dict[str, dict[str, str]] = {}
    for (source, target), one, other in zip(languages, *(side.to_pylist() for side in pairs.texts(every)), strict=True):
        if manifest.pivot in (source, target):
            shared, language, text = (one, target, other) if source == manifest.pivot else (other, source, one)
            meanings.setdefault(shared, {})[language] = text
    found = []
    for source, target in wanted:
        lines = [(texts[source], texts[target]) for texts in meanings.values() if source in texts and target in texts]
        if len(lines) >= FEWEST:
            places = np.unique(np.linspace(0, len(lines) - 1, min(most, len(lines))).astype(np.int64))
            sources, references = zip(*(lines[place] for place in places), strict=True)
            found.append(DirectionSet((source, target), list(sources), list(references), [()] * len(places), trained=False))
    return found


def translate_direction(
    folder: Path, asked: DirectionSet, running: InferenceOptions, watch: Callable[[Speed, int], None], probabilities: bool, tagged: bool
) -> TranslatedSet:
    """The set by the bundle of `folder`, each source with its tags. Not `tagged`: the bundle has one direction and is told nothing."""
    if not tagged:
        return translate_set(folder, asked.sources, running=running, watch=watch, probabilities=probabilities)
    texts, parts = [""] * len(asked.sources), list[TranslatedSet]()
    claimed: list[tuple[list[Word], float]] = [([], 0.0)] * len(asked.sources)
    for names, places in asked.places_by_names().items():
        aimed = replace(running, source=asked.direction[0], target=asked.direction[1], tags=names)
        sources = [asked.sources[place] for place in places]
        made = translate_set(folder, sources, running=aimed, watch=watch, probabilities=probabilities)
        for place, text, claim in zip(places, made.texts, made.claimed, strict=True):
            texts[place], claimed[place] = text, claim
        parts.append(made)
    sums = [sum(values) for values in zip(*(vars(part.speed).values() for part in parts), strict=True)]
    speed = Speed(int(sums[0]), float(sums[1]), int(sums[2]), int(sums[3]))
    warnings = sum((Counter(part.warnings) for part in parts), Counter[str]())
    return replace(parts[0], texts=texts, claimed=claimed, speed=speed, warnings=dict(warnings))
