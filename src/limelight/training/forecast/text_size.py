"""The size of an epoch tells a plan how many pairs and pieces a text has, and how long they are."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from limelight.corpus.encode import at_most
from limelight.corpus.feeding.shards import PreparedCorpus
from limelight.corpus.manifest import CorpusManifest
from limelight.planning.corpus_work import BYTES
from limelight.planning.sizing_rules import TextStats
from limelight.text.pieces.tokenizer import suggest_size
from limelight.training.recipe.text_stats import FedText, PreparedText, frequencies

PAIRS_OF_THE_PAPER: Final = 4_500_000  # WMT 2014 English-German (5.1)
LONG: Final = 0.999  # of the sentences are no longer than what a batch of long ones is made of


@dataclass(frozen=True)
class EpochSize:
    """An epoch of training has this size. Pieces count with the special ids around them; corpora as often as their weights say."""

    pairs: float
    source: float
    target: float
    vocab_sizes: tuple[int, int]
    joint: bool  # one vocabulary for both sides
    longest: tuple[int, int]  # pieces that nearly no sentence has more of
    read: int  # pairs in the files
    bytes_of_pair: float = BYTES  # of text, both sides
    sampled: int | None = None  # pairs of them that were prepared. None: all, earlier
    dropped: float = 0.0  # of what was read
    counted: bool = True  # False: a file was too long to be read to its end, and its pairs are told by its bytes
    typical: bool = False  # no text was given: lengths that are common
    frequencies: float | None = None  # entropy of its target pieces in nats, of those that were prepared

    @property
    def text(self) -> TextStats:
        return TextStats(self.pairs, self.source, self.target, self.frequencies)

    @property
    def means(self) -> tuple[float, float]:
        return self.source / self.pairs, self.target / self.pairs

    def of(self, pairs: float) -> "EpochSize":
        """Return the size of the same kind of text with this number of pairs."""
        more = pairs / self.pairs
        source, target, read = self.source * more, self.target * more, round(self.read * more)
        return replace(self, pairs=pairs, source=source, target=target, read=read, counted=False)


def typical(pairs: float) -> EpochSize:
    """Return the size of a text that was not given: a sentence of news has about 25 words, 30 pieces with its end (docs/plan.md)."""
    pieces, words = 30.0, 25 * 2
    size = suggest_size(round(words * pairs))
    return EpochSize(pairs, pieces * pairs, pieces * pairs, (size, size), True, (128, 128), round(pairs), typical=True)


def measure_prepared(folder: Path) -> EpochSize:
    manifest = CorpusManifest.load(folder)
    seen = compute_size(manifest, PreparedText.of(manifest).pairs, sum(corpus.read for corpus in manifest.corpora))
    return replace(seen, frequencies=frequencies(PreparedCorpus.open(folder, verify=False)))


def compute_size(manifest: CorpusManifest, pairs: float, read: int) -> EpochSize:
    figures = manifest.statistics["pieces"]["train"]
    fed = FedText.of(manifest)
    source, target = (pairs * (pieces / fed.rows + around) for pieces, around in zip(fed.pieces, fed.around, strict=True))
    one, other = (at_most(figures[side]["lengths"], LONG, figures[side]["longest"]) + 1 for side in ("source", "target"))
    judged = sum(corpus.read for corpus in manifest.corpora)
    dropped = sum(sum(corpus.dropped.values()) for corpus in manifest.corpora)
    return EpochSize(
        pairs, source, target, manifest.vocab_sizes, len(manifest.pieces) == 1, (one, other), read,
        dropped=dropped / max(1, judged),
    )  # fmt: skip
