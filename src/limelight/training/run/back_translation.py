"""Back-translation makes synthetic pairs (Sennrich et al. 2016). Monolingual lines become targets, and their translations the sources.

The search is the beam of the translator, not sampling. From little text a model is weak, and what it samples is noise (Edunov et al. 2018,
section 5.3), while a tag before the source does what noise does (Caswell et al. 2019). Lines are translated in chunks, each a file, so that
a run that was killed goes on; a chunk depends on its lines alone.
"""

import json
import shutil
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import xxhash

from limelight.corpus.cleaning.clean import Cleaner
from limelight.corpus.cleaning.reasons import Reason
from limelight.corpus.config import PrepareSettings
from limelight.corpus.exchange.engine import Progress
from limelight.corpus.reading.finding import LINES
from limelight.corpus.reading.raw import CorpusPart
from limelight.corpus.reading.raw_batches import assemble
from limelight.files import write_whole
from limelight.training.recipe.monolingual import PAIRS, SyntheticCounts
from limelight.training.recipe.replay import write_pairs
from limelight.translator import Translation, Translator

CHUNK: Final = 1_000  # lines between two files
LEAST_SURE: Final = 0.1  # of a chunk, by confidence, that is dropped
PARTS: Final = "synthetic-parts"
DEGENERATE, UNSURE, NO_TIME = "degenerate", "unsure", "no_time"  # why a line becomes no pair, beside the reasons of a corpus


@dataclass(frozen=True)
class BackTranslator:
    """A back-translator has the run that translates, and the settings of the pairs that it makes, in their direction."""

    run: Path
    settings: PrepareSettings
    device: str | None
    threads: int | None

    def make_pairs(
        self, lines: Sequence[str], counts: SyntheticCounts, seconds: float | None, watch: Callable[[Progress], None]
    ) -> SyntheticCounts:
        """Translate as many lines as `seconds` allow, one chunk at least. The counts are written last: it is done then."""
        place, dropped = self.run / PARTS, Counter(counts.dropped)
        place.mkdir(exist_ok=True)
        pairs: list[tuple[str, str]] = []
        with Translator.load(self.run, self.device, threads=self.threads) as translator:
            for start in range(0, len(lines), CHUNK):
                if start and seconds is not None and counts.seconds >= seconds:
                    dropped[NO_TIME] = len(lines) - start
                    break
                watch(Progress("translate back", start, len(lines)))
                made = self._make_part(translator, lines[start : start + CHUNK], place)
                pairs += made["pairs"]
                dropped.update(made["dropped"])
                counts.seconds += made["seconds"]
                counts.translated += min(CHUNK, len(lines) - start)
        watch(Progress("translate back", len(lines), len(lines)))
        counts.kept, counts.dropped = len(pairs), dict(dropped)
        write_pairs(self.run / PAIRS, *(pa.array([pair[side] for pair in pairs], pa.string()) for side in (0, 1)))
        counts.save(self.run)
        shutil.rmtree(place)
        return counts

    def _make_part(self, translator: Translator, lines: Sequence[str], place: Path) -> dict[str, Any]:
        """What an earlier start has written of these lines, or what is written now."""
        joined = "\n".join(lines)
        path = place / f"{xxhash.xxh3_64_hexdigest(joined.encode())}.json"
        if not path.exists():
            began = time.monotonic()
            pairs, dropped = self._judge(lines, translator.translate(lines))
            made = {"seconds": time.monotonic() - began, "dropped": dropped, "pairs": pairs}
            write_whole(path, json.dumps(made, ensure_ascii=False).encode())
        return dict(json.loads(path.read_bytes()))

    def _judge(self, lines: Sequence[str], made: Sequence[Translation]) -> tuple[list[tuple[str, str]], dict[str, int]]:
        """Pairs, and why the others are dropped: a broken translation, a filter of the corpus, or less confidence than the others have."""
        part = CorpusPart(0, 0, LINES, ("", ""), self.settings.languages)
        texts = [pa.array(side, pa.string()) for side in ([each.text for each in made], lines)]
        raw = assemble(part, *texts, np.arange(1, len(lines) + 1), np.zeros(len(lines), np.uint8))
        reasons = Cleaner(self.settings, 1).judge_rows(raw)["reason"].to_list()
        least = sorted(each.confidence for each in made)[int(LEAST_SURE * len(made))]
        pairs, dropped = [], Counter[str]()
        for line, translation, reason in zip(lines, made, reasons, strict=True):
            if translation.degenerate or translation.finish != "eos":
                dropped[DEGENERATE] += 1
            elif reason != Reason.KEPT:
                dropped[Reason(reason).label] += 1
            elif translation.confidence < least:
                dropped[UNSURE] += 1
            else:
                pairs.append((translation.text, line))
        return pairs, dict(dropped)
