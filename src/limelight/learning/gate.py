"""A gate refuses corrections that would teach nonsense, each with the reason.

The filters of a corpus look at the text: copies, other languages, lengths, placeholders, noise. What is short escapes them, and there the
translator itself is asked, in both directions:

    contrast = log p(correction | source) per character - log p(source | correction) per character

A translator into German knows German better than English, so that a good pair is likelier as it stands than the other way round. A
swapped pair is likelier the other way round, a copy is equally likely, and keys hit at random or another language are unlikely as German.
That both sides are of the same text makes the figure the same for texts of every kind, also such as the translator has never seen.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from limelight.corpus.cleaning.clean import Cleaner
from limelight.corpus.cleaning.reasons import Reason
from limelight.corpus.config import CorpusSettings, FilterSettings, PrepareSettings
from limelight.corpus.reading.raw import CorpusPart
from limelight.corpus.reading.raw_batches import assemble
from limelight.translator import Translator

LEAST_CONTRAST = -0.2  # nats per character; measured on software strings (docs/decisions/0047)
SHORT = 5  # characters added to both lengths: of three letters a figure per character says little
BLOCK = 512  # pairs that are scored at once
UNLIKELY, ROOM = "unlikely", "too_long"
# Copies of a single word too: where a copy is right, it teaches nothing.
FILTERS = FilterSettings(copied_words=1, numbers="drop", identified_letters=8, surely_other=0.6)
Pair = tuple[str, str]


@dataclass(frozen=True)
class Sifted:
    """What was taken, and what was refused, each with its reason."""

    taken: list[Pair]
    refused: list[tuple[Pair, str]]

    @property
    def reasons(self) -> dict[str, int]:
        return dict(Counter(reason for _, reason in self.refused).most_common())


def sift(pairs: Sequence[Pair], translator: Translator) -> Sifted:
    """`pairs` are sources and corrections. Equal pairs are taken once."""
    pairs = list(dict.fromkeys(pairs))
    reasons = _ask_filters(pairs, translator.settings.languages)
    for number in _find_too_long(pairs, [number for number, reason in enumerate(reasons) if not reason], translator):
        reasons[number] = ROOM
    still = [number for number, reason in enumerate(reasons) if not reason]
    for number, contrast in zip(still, find_contrasts([pairs[number] for number in still], translator), strict=True):
        if contrast < LEAST_CONTRAST:
            reasons[number] = UNLIKELY
    judged = list(zip(pairs, reasons, strict=True))
    return Sifted([pair for pair, reason in judged if not reason], [(pair, reason) for pair, reason in judged if reason])


def find_contrasts(pairs: Sequence[Pair], translator: Translator) -> list[float]:
    """How much likelier each correction is, given its source, than the other way round; per character."""
    found: list[float] = []
    for begin in range(0, len(pairs), BLOCK):
        sources, targets = map(list, zip(*pairs[begin : begin + BLOCK], strict=True))
        scored = zip(sources, targets, translator.score(sources, targets), translator.score(targets, sources), strict=True)
        found += [there.log_prob / (len(b) + SHORT) - back.log_prob / (len(a) + SHORT) for a, b, there, back in scored]
    return found


def _find_too_long(pairs: Sequence[Pair], asked: Sequence[int], translator: Translator) -> list[int]:
    """Those of which the model cannot look at a side, or cannot write it: each is read and written."""
    room, texts = translator.settings.model.max_length - 1, [text for number in asked for text in pairs[number]]
    fit = [0 < len(a) <= room and len(b) < room for a, b in zip(translator.source_ids(texts), translator.target_ids(texts), strict=True)]
    return [number for place, number in enumerate(asked) if not (fit[2 * place] and fit[2 * place + 1])]


def _ask_filters(pairs: Sequence[Pair], languages: tuple[str, str]) -> list[str]:
    """The label of the first filter that objects to each, or an empty one."""
    if not pairs:
        return []
    settings = PrepareSettings(languages=languages, corpora=[CorpusSettings(name="corrections", paths=["-"])], filters=FILTERS)
    part = CorpusPart(0, 0, "jsonl", ("-",), languages)
    sources, targets = (pa.array([pair[side] for pair in pairs], pa.string()) for side in (0, 1))
    batch = assemble(part, sources, targets, np.arange(len(pairs)), np.zeros(len(pairs), np.uint8))
    found = Cleaner(settings, 1).judge_rows(batch)["reason"].to_list()
    return ["" if reason == Reason.KEPT else Reason(reason).label for reason in found]
