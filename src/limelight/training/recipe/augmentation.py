"""Augmentation of the text is all that its pieces can show, unless a person asked for other changes or none."""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import polars as pl
import torch

from limelight.bundle import Learnt
from limelight.corpus.encode import at_most
from limelight.corpus.feeding.alter import DRAWN, Drawn
from limelight.corpus.feeding.augment import AugmentSettings, count_placeholders, lacking
from limelight.corpus.feeding.batches import BatchSettings
from limelight.corpus.feeding.shards import PreparedCorpus
from limelight.training.run_folder import RunChoice

WORDS: Final[dict[Drawn, str]] = {
    "copied": "with marks to copy",
    "upper": "upper case",
    "title": "title case",
    "lower": "lower case",
    "typos": "typos",
    "punctuation": "without full stop",
    "merged": "merged with the next",
    "terms": "with terms",
    "matches": "with the translation of a similar text",
    "names": "with another name in place of one",
}
MATCHES: Final = 0.15  # the share where a translator was taught them before
NAMES: Final = 0.1  # measured: docs/experiments.md
TAGGED: Final = r"</[A-Za-z0-9]|<[A-Za-z0-9][^<>]*/>"  # a closing tag, or one that is closed in itself
ENOUGH_TAGS: Final = 1000  # pairs that have some; with fewer a model puts them anywhere, and the words beside them suffer
COUNTED: Final = 200_000  # pairs all over the text
LEAST_RANGE: Final = 32  # pieces: below that nothing is worth parting
WHY: Final = "so that case, typos and placeholders do not break it"


def choose_augmentation(
    prepared: PreparedCorpus, asked: Mapping[str, Any], takes_matches: bool = False, is_new: bool = True
) -> tuple[AugmentSettings | None, RunChoice]:
    """`asked` is what a person gave for the batches; `takes_matches`: the translator to go on from is told them, and shall not forget;
    `is_new`: it knows no names yet."""
    given = asked.get("augment", {})
    if given is None:
        return None, RunChoice("augment", "none", "asked for")
    lacks = lacking(*prepared.tokenizers())
    settings = AugmentSettings(**{"matches": MATCHES if takes_matches else 0.0, **dict.fromkeys(lacks, 0.0), **given})
    if is_new and "names" not in given and prepared.cache is None:  # what was asked for comes first; names are learnt from text at hand
        settings = settings.changed(names=max(0.0, min(NAMES, 1 - sum(map(settings.share, DRAWN)))))
    why = "asked for" if given else WHY
    lost = {kind: reason for kind, reason in lacks.items() if AugmentSettings().share(kind) and not settings.share(kind)}
    for reason in dict.fromkeys(lost.values()):
        why += f"; without {' and '.join(kind for kind in lost if lost[kind] == reason)}, since {reason}"
    return settings, RunChoice("augment", describe_augmentation(settings), why)


def derive_learnt(prepared: PreparedCorpus, settings: AugmentSettings | None) -> Learnt | None:
    """What a model is taught beside translating when its text is changed so. None: nothing."""
    if settings is None:
        return None
    every = prepared.manifest.statistics["pieces"]["train"]
    sources = [every[side] for side in (("source", "target") if prepared.manifest.both_directions else ("source",))]
    # A sentence twice as long as nearly all has positions that the model has hardly seen.
    longest = max(min(each["longest"], 2 * at_most(each["lengths"], 0.999, each["longest"])) for each in sources)
    marks = count_placeholders(*prepared.tokenizers()) if settings.protect or settings.copied else 0
    return Learnt(
        marks=marks,
        terms=settings.terms > 0,
        matches=settings.matches > 0,
        longest=max(LEAST_RANGE, longest),
        tags=has_tags(prepared) if marks else None,
    )


def has_tags(prepared: PreparedCorpus) -> bool | None:
    """Has the training text tags enough to learn where they go? None of text at an address, which is not fetched for it."""
    if prepared.cache is not None:
        return None
    pairs = prepared.split("train")
    rows = np.unique(np.linspace(0, max(0, pairs.rows - 1), min(COUNTED, pairs.rows)).astype(np.int64))
    source, target = (pl.Series(pl.from_arrow(side)).str.contains(TAGGED) for side in pairs.texts(rows))
    return bool((source & target).sum() * pairs.rows >= ENOUGH_TAGS * max(1, len(rows)))


def describe_augmentation(settings: AugmentSettings) -> str:
    """protect 90 % of pairs with placeholders; 3 % upper case, 2 % title case"""
    parts = [f"protect {_percent(settings.protect)} of pairs with placeholders"] if settings.protect else []
    shares = [f"{_percent(settings.share(kind))} {WORDS[kind]}" for kind in DRAWN if settings.share(kind)]
    return "; ".join([*parts, *([", ".join(shares)] if shares else [])]) or "none"


def _percent(share: float) -> str:
    return f"{100 * share:g} %"


def workers_for(batch: BatchSettings, device: torch.device) -> int:
    """Changing text takes the time of one step in fifty or a hundred of a CPU, which has no core to spare; an accelerator would wait."""
    return int(batch.sampling is not None or (batch.augment is not None and device.type != "cpu"))
