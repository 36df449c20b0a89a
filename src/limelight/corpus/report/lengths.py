"""The section about lengths has histograms, pieces per word, unknown pieces and the longest texts."""

from collections.abc import Iterable, Sequence
from typing import Final

from limelight.corpus.encode import at_most
from limelight.corpus.manifest import CorpusManifest, Split
from limelight.corpus.report import pictures
from limelight.corpus.report.markup import Figure, figure, paragraph, picture, table

SPLITS: Final[tuple[Split, ...]] = ("train", "valid", "test")
SIDES: Final = ("source", "target")


def lengths(manifest: CorpusManifest) -> str:
    """Show the lengths of all kept pairs. Empty for a manifest without statistics."""
    tally, figures = manifest.statistics.get("tally"), manifest.statistics.get("pieces")
    if not tally or not figures:
        return ""
    pieces = [_sum_columns(mine[side]["lengths"] for mine in figures.values()) for side in SIDES]
    longest = [max(mine[side]["longest"] for mine in figures.values()) for side in SIDES]
    half = [at_most(counts, 0.5, most) for counts, most in zip(pieces, longest, strict=True)]
    alt = f"Histogram: half of the sources have at most {half[0]} pieces, half of the targets at most {half[1]}."
    by_pieces = pictures.piece_histogram(pieces[0], pieces[1], alt)
    characters = [tally["lengths"][side] for side in SIDES]
    by_characters = pictures.character_histogram(
        characters[0], characters[1], "Histogram of the characters of sources and targets."
    )
    return "\n".join(
        [
            "<h2>Lengths</h2>",
            paragraph("Of all kept pairs, in pieces and in characters. A word is what stands between spaces."),
            '<div class="pictures">',
            picture(by_pieces, "Pieces. The few longest texts share the last bar."),
            picture(by_characters, "Characters, on a logarithmic axis. The first bar holds all texts shorter than 10."),
            "</div>",
            _words(manifest),
            _pieces(manifest),
        ]
    )


def _words(manifest: CorpusManifest) -> str:
    tally, figures = manifest.statistics["tally"], manifest.statistics["pieces"]
    rows = []
    for side, language, size in zip(SIDES, manifest.languages, manifest.vocab_sizes, strict=True):
        words, characters = tally["words"][side], tally["characters"][side]
        pieces = sum(mine[side]["pieces"] for mine in figures.values())
        ratios = [Figure(f"{pieces / max(1, words):.2f}"), Figure(f"{characters / max(1, pieces):.2f}")]
        rows.append([f"{side} ({language})", *map(figure, (size, words, characters, pieces)), *ratios])
    head = ["side", "vocabulary", "words", "characters", "pieces", "pieces per word", "characters per piece"]
    return table("Text of all kept pairs", head, rows)


def _pieces(manifest: CorpusManifest) -> str:
    """A bound of the model's length cuts or refuses what is longer: the last columns say what that would cost."""
    rows = []
    for split in SPLITS:
        for side, mine in manifest.statistics["pieces"].get(split, {}).items():
            bounds = [at_most(mine["lengths"], part, mine["longest"]) for part in (0.5, 0.95, 0.99)]
            counts = (sum(mine["lengths"]), mine["pieces"], mine["unknown"], *bounds, mine["longest"])
            rows.append([f"{split} {side}", *map(figure, counts)])
    head = [
        "texts",
        "pairs",
        "pieces",
        "unknown pieces",
        "half have at most",
        "95 % at most",
        "99 % at most",
        "longest",
    ]
    return table("Pieces of each split", head, rows)


def _sum_columns(rows: Iterable[Sequence[int]]) -> list[int]:
    return [sum(column) for column in zip(*rows, strict=True)]
