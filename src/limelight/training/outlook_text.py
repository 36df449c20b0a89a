"""What a text is to a plan: how many pairs and pieces an epoch has, and how long they are. Of a prepared corpus exactly; of one that nobody
has shown, what is usual; of files, from a sample (`training.outlook_sample`).
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from limelight.corpus.encode import at_most
from limelight.corpus.manifest import Manifest
from limelight.corpus.shards import Prepared
from limelight.planning.choosing import Text
from limelight.planning.corpus_work import BYTES
from limelight.text.tokenizer import suggest_size
from limelight.training.frequencies import frequencies

PAIRS_OF_THE_PAPER: Final = 4_500_000  # WMT 2014 English-German (5.1)
LONG: Final = 0.999  # of the sentences are no longer than what a batch of long ones is made of


@dataclass(frozen=True)
class Seen:
    """An epoch of training. Pieces with what stands around them; corpora as often as their weights say."""

    pairs: float
    source: float
    target: float
    vocab_sizes: tuple[int, int]
    joint: bool  # one vocabulary for both sides
    longest: tuple[int, int]  # pieces that nearly no sentence has more of
    read: int  # pairs in the files
    bytes_of_pair: float = BYTES  # of text, both sides
    sampled: int | None = None  # of which so many were prepared. None: all, earlier
    dropped: float = 0.0  # of what was read
    counted: bool = True  # False: a file was too long to be read to its end, and its pairs are told by its bytes
    typical: bool = False  # nobody saw a text: lengths that are common
    frequencies: float | None = None  # entropy of its target pieces in nats, of those that were prepared

    @property
    def text(self) -> Text:
        return Text(self.pairs, self.source, self.target, self.frequencies)

    @property
    def means(self) -> tuple[float, float]:
        """Pieces of a pair."""
        return self.source / self.pairs, self.target / self.pairs

    def of(self, pairs: float) -> "Seen":
        """The same kind of text, so many pairs of it."""
        more = pairs / self.pairs
        values = {**vars(self), "pairs": pairs, "source": self.source * more, "target": self.target * more}
        return Seen(**{**values, "read": round(self.read * more), "counted": False})


def typical(pairs: float) -> Seen:
    """Of a text that nobody has shown: a sentence of news has about 25 words, 30 pieces with its end (docs/plan.md)."""
    pieces, words = 30.0, 25 * 2
    size = suggest_size(round(words * pairs))
    return Seen(pairs, pieces * pairs, pieces * pairs, (size, size), True, (128, 128), round(pairs), typical=True)


def prepared(folder: Path) -> Seen:
    """Of a corpus that was prepared: exact."""
    manifest = Manifest.load(folder)
    rows = [0] * len(manifest.corpora)
    for shard in manifest.splits["train"]:
        rows = [a + b for a, b in zip(rows, shard.rows_by_corpus, strict=True)]
    pairs = sum(count * corpus.weight for count, corpus in zip(rows, manifest.corpora, strict=True))
    seen = seen_in(manifest, pairs, sum(corpus.read for corpus in manifest.corpora))
    return replace(seen, frequencies=frequencies(Prepared.open(folder, verify=False)))


def seen_in(manifest: Manifest, pairs: float, read: int) -> Seen:
    """So many pairs of the kind that was prepared."""
    figures = manifest.statistics["pieces"]["train"]
    plain = sum(shard.rows for shard in manifest.splits["train"])
    sides = zip(("source", "target"), manifest.marks.around, strict=True)
    source, target = (pairs * (figures[side]["pieces"] / plain + around) for side, around in sides)
    one, other = (
        at_most(figures[side]["lengths"], LONG, figures[side]["longest"]) + 1 for side in ("source", "target")
    )
    judged = sum(corpus.read for corpus in manifest.corpora)
    dropped = sum(sum(corpus.dropped.values()) for corpus in manifest.corpora)
    return Seen(
        pairs, source, target, manifest.vocab_sizes, len(manifest.pieces) == 1, (one, other), read,
        dropped=dropped / max(1, judged),
    )  # fmt: skip
