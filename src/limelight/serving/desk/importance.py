"""A task measures which heads of a served model matter. It is made from a request, and run in the thread of a job."""

import hashlib
import json
from collections.abc import Hashable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from limelight.corpus.feeding.shards import PreparedCorpus
from limelight.errors import DataError, LengthError
from limelight.inspection.analysis.importance import Pair, importance
from limelight.serving.desk.jobs import Report
from limelight.serving.desk.requests import ImportanceRequest
from limelight.serving.queue.models import ServedModel
from limelight.serving.refusals import BadRequest, NotFound
from limelight.translator import Translator

PREPARED = "prepared"  # in the folder of a run
DIGITS = 6


@dataclass(frozen=True)
class ImportanceTask:
    """A task names the sentences to measure on; `texts` None: those of the validation set.

    `key` is the same for the same task; that of given sentences is their owner's alone.
    """

    texts: tuple[str, ...] | None
    sentences: int
    key: Hashable

    @property
    def characters(self) -> int:
        return sum(map(len, self.texts or ()))


def make_importance_task(served: ServedModel, asked: ImportanceRequest, owner: str) -> ImportanceTask:
    if (asked.sentences is None) == (asked.set is None):
        raise BadRequest('give either "sentences" or "set"', 'such as {"sentences": ["A cat sits."]}')
    if asked.sentences is not None:
        written = json.dumps(asked.sentences).encode()
        key = (served.id, asked.mode, owner, hashlib.sha256(written).hexdigest())
        return ImportanceTask(tuple(asked.sentences), len(asked.sentences), key)
    if _find_prepared(served) is None:
        raise NotFound(f"the model {served.id} has no validation set here", 'give "sentences" instead')
    return ImportanceTask(None, asked.n, (served.id, asked.mode, asked.set, asked.n))


def rank_heads(served: ServedModel, asked: ImportanceTask, longest: int, report: Report) -> dict[str, Any]:
    """What muting each head does to the translations: the model's own, or those of the set."""
    translator = served.translator
    sources, targets = (asked.texts, None) if asked.texts else _pairs_of_set(served, asked.sentences)
    pairs = _as_ids(translator, sources, targets, longest)
    skipped = len(sources) - len(pairs)
    given = len(translator.target_ids([""])[0])
    engine = translator.torch_engine
    found = importance(engine.model, pairs, engine.specials, report, given)
    return {"sentences": len(pairs), "skipped": skipped, "heads": [_round_values(asdict(each)) for each in found]}


def _as_ids(
    translator: Translator, sources: tuple[str, ...], targets: tuple[str, ...] | None, longest: int
) -> list[Pair]:
    """Return ids as the model reads and writes them, without their ends. Pairs of a set that do not fit are left out; given sentences
    are named, and only those whose translation does not fit are left out."""
    read = translator.source_ids(sources)
    room = min(longest, translator.settings.model.max_length - 1)
    wrong = [f"sentence {i} has {len(ids)} pieces" for i, ids in enumerate(read) if not 0 < len(ids) <= room]
    if wrong and targets is None:
        raise LengthError(f"{', '.join(wrong)}, and one takes 1 to {room}; cut them, or leave them out")
    if targets is None:
        # As the model alone does it: what is protected, and terms, are put in beside the model.
        made = translator.translate(sources, protect=False, glossary=[None] * len(sources), segment=False)
        targets = tuple(each.text for each in made)
    written = translator.target_ids(targets)
    pairs: list[Pair] = [
        (source, target)
        for source, target in zip(read, written, strict=True)
        if 0 < len(source) <= room and len(target) < room
    ]
    if not pairs:
        raise DataError("none of these sentences has a translation that fits; give others")
    return pairs


def _find_prepared(served: ServedModel) -> Path | None:
    place = None if served.run is None else served.run / PREPARED
    return place if place is not None and (place / "manifest.json").is_file() else None


def _pairs_of_set(served: ServedModel, wanted: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return `wanted` pairs of the validation set, from all over it."""
    place = _find_prepared(served)
    if place is None:
        raise NotFound("the validation set is not there any more")
    pairs = PreparedCorpus.open(place, verify=False).split("valid")
    some = np.unique(np.linspace(0, pairs.rows - 1, min(wanted, pairs.rows)).astype(np.int64))
    sources, targets = pairs.texts(some)
    return tuple(sources.to_pylist()), tuple(targets.to_pylist())


def _round_values(values: dict[str, Any]) -> dict[str, Any]:
    return {name: round(value, DIGITS) if isinstance(value, float) else value for name, value in values.items()}
