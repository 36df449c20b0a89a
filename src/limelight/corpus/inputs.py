"""`Inputs` lists the files of all corpora and held-out sets, with a fingerprint of their content. It says how many buckets they fill."""

import hashlib
import json
import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

from limelight.corpus.config import PrepareSettings
from limelight.corpus.manifest import InputEntry, Split
from limelight.corpus.readers import find
from limelight.corpus.reading.finding import refuse_missing
from limelight.corpus.reading.raw import CorpusPart
from limelight.corpus.reading.streams import content_hash, size_of, without_packing

UNPACKED = 3.3  # bytes of text in a byte of gzip or zstd of natural language; only the number of buckets depends on it


@dataclass(frozen=True)
class Inputs:
    """`file` in the provenance of a pair counts through `entries`."""

    train: list[CorpusPart]
    held_out: dict[Split, list[CorpusPart]]
    entries: list[InputEntry]
    buckets: int

    @classmethod
    def find(cls, settings: PrepareSettings) -> "Inputs":
        """Finds every file before it reads one, and hashes them all."""
        parts = find_train(settings)
        train = list(parts)
        held_out: dict[Split, list[CorpusPart]] = {}
        for number, each in enumerate(settings.held_out_sets, len(settings.corpora)):
            found = find(each.paths, each.languages, corpus=number, first_file=len(parts))
            swapped = settings.stored[number] != each.languages
            found = [replace(part, swapped=swapped) for part in found]
            held_out.setdefault(each.split, []).extend(found)
            parts += found
        with ThreadPoolExecutor() as threads:  # hashing leaves Python's lock
            hashes = list(threads.map(lambda part: [content_hash(path) for path in part.paths], parts))
        entries = [InputEntry(corpus=part.corpus, paths=list(part.paths), sha256=sha) for part, sha in zip(parts, hashes, strict=True)]
        paths = [path for part in train for path in part.paths]
        text = sum(size_of(path) * (UNPACKED if without_packing(path) != path else 1) for path in paths)
        return cls(train, held_out, entries, max(1, math.ceil(text / (settings.shard_megabytes << 20))))

    @property
    def fingerprint(self) -> list[Any]:
        """Content and order, not names or places: a renamed copy is the same input."""
        parts = [*self.train, *(part for found in self.held_out.values() for part in found)]
        return [
            [part.corpus, part.format, entry.sha256, *(["swapped"] if part.swapped else [])]
            for part, entry in zip(parts, self.entries, strict=True)
        ]


def find_train(settings: PrepareSettings) -> list[CorpusPart]:
    """The files of the corpora, each read in its own languages."""
    parts: list[CorpusPart] = []
    refuse_missing([path for corpus in settings.corpora for path in corpus.paths])
    for number, corpus in enumerate(settings.corpora):
        languages = corpus.languages or settings.languages
        found = find(corpus.paths, languages, columns=corpus.columns, corpus=number, first_file=len(parts))
        swapped = corpus.swapped != (settings.stored[number] != languages)  # de-en beside en-de is read into its order
        parts += [replace(part, swapped=swapped, partial=corpus.partial) for part in found]
    return parts


def digest(*values: Any) -> str:
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()
