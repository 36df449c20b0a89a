"""The report of a corpus says what was read, what was dropped and why, what is left, and what it was made from:

    page(manifest)      the page: prepared/report.html
    describe(manifest)  the same as blocks, for the inside of another report

All figures come from the manifest: equal manifests give equal bytes.
"""

import json
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Final

from limelight.corpus.cleaning.clean import SHOWN
from limelight.corpus.cleaning.reasons import EXPLAINED, Reason
from limelight.corpus.encode import at_most
from limelight.corpus.exchange.settle import SHOWN_CHARACTERS
from limelight.corpus.manifest import HELD_OUT, SIDES, CorpusManifest, Split
from limelight.corpus.report import pictures
from limelight.reporting import charts
from limelight.reporting.blocks import (
    Block,
    Cell,
    Code,
    Details,
    Listing,
    Paragraph,
    Pictures,
    Quote,
    Section,
    Strong,
    Table,
)
from limelight.reporting.formats import write_html
from limelight.reporting.units import decimal, figure, share

REASONS: Final = {why.label: why for why in Reason}
SPLITS: Final[tuple[Split, ...]] = ("train", *HELD_OUT)


def page(manifest: CorpusManifest) -> str:
    return write_html(f"Prepared corpus, {manifest.described}", describe(manifest))


def describe(manifest: CorpusManifest, level: int = 2) -> list[Block]:
    """`level` is that of its headings."""
    settings = json.dumps(manifest.settings, indent=2, ensure_ascii=False, sort_keys=True)
    parts: list[tuple[str, Sequence[Block]]] = [
        ("What became of each corpus", [_corpora(manifest)]),
        ("Why pairs were dropped", _drops(manifest)),
        ("Warnings", _warnings(manifest)),
        ("Lengths", _lengths(manifest)),
        ("Overlap with held-out sets", _show_held_out(manifest)),
        ("Dropped pairs to look at", _show_dropped(manifest)),
        ("Inputs", [Table("Files that were read", ["corpus", "file", "SHA-256"], _inputs(manifest))]),
        ("Settings", [Details("All settings", [Listing(settings)])]),
    ]
    missing = [] if charts.INSTALLED else [charts.MISSING]
    return [_summary(manifest), *missing, *(Section(title, blocks, level) for title, blocks in parts if blocks)]


def _summary(manifest: CorpusManifest) -> Paragraph:
    """One sentence with the figures that matter."""
    read, kept, dropped = totals(manifest)
    lost, left = sum(dropped.values()), sum(kept.values())
    corpora = "one corpus" if len(manifest.corpora) == 1 else f"{len(manifest.corpora)} corpora"
    way = f"from {manifest.described}" if len(manifest.directions) == 1 else f"for {manifest.described}"
    uses = " · ".join(f"{split} {figure(kept[split])}" for split in SPLITS)
    sizes = [figure(size) for size in manifest.vocab_sizes]
    vocabulary = (
        f"one vocabulary of {sizes[0]} pieces serves both languages"
        if len(manifest.pieces) == 1
        else f"the vocabularies have {sizes[0]} and {sizes[1]} pieces"
    )
    parts: list[Cell] = [
        "Of ", Strong(figure(read)), f" pairs {way} read in {corpora}, ",
        Strong(figure(left)), f" ({share(left, read)}) are kept ({uses}) and ",
        Strong(figure(lost)), f" ({share(lost, read)}) are dropped; {vocabulary}.",
    ]  # fmt: skip
    return Paragraph(parts, first=True)


def _corpora(manifest: CorpusManifest) -> Table:
    """A row is an equation: read = kept + dropped. Then kept by split, and dropped by reason."""
    read, kept, dropped = totals(manifest)

    def cells(title: str, read: int, kept: dict[str, int], dropped: dict[str, int]) -> list[Cell]:
        equation = [figure(read), figure(sum(kept.values()), "= "), figure(sum(dropped.values()), "+ ")]
        by_split = [figure(kept.get(split, 0)) for split in SPLITS]
        return [title, *equation, *by_split, *(figure(dropped.get(reason, 0)) for reason in reasons)]

    reasons = list(dropped)
    head = ["corpus", "read", "=\u00a0kept", "+\u00a0dropped", *SPLITS, *map(pictures.name, reasons)]
    groups = [("", 4), ("kept for", len(SPLITS)), *([("dropped for", len(reasons))] if reasons else [])]
    rows = [cells(corpus.name, corpus.read, corpus.kept, corpus.dropped) for corpus in manifest.corpora]
    return Table("Pairs of each corpus", head, rows, cells("all", read, kept, dropped), groups)


def _drops(manifest: CorpusManifest) -> list[Block]:
    """The waterfall, and the same as a table."""
    read, kept, dropped = totals(manifest)
    if not dropped:
        return ["No pair was dropped."]
    left = [read - gone for gone in accumulate(dropped.values())]
    rows: list[list[Cell]] = [
        [pictures.name(reason), figure(pairs), share(pairs, read), figure(rest), *_explain(reason)]
        for (reason, pairs), rest in zip(dropped.items(), left, strict=True)
    ]
    falls = ", ".join(f"{pairs} as {pictures.name(reason)}" for reason, pairs in dropped.items())
    alt = f"Waterfall: of {read} pairs read, {falls} fall away; {sum(kept.values())} are kept."
    drawn = pictures.waterfall(read, list(dropped.items()), alt)
    return [
        "The filters are asked from top to bottom. The first that objects drops the pair and is its reason.",
        Pictures([(drawn, "From read to kept, filter by filter.")] if drawn else []),
        Table("Dropped pairs", ["reason", "pairs", "of all read", "left", "meaning", "decided by"], rows),
    ]


def _warnings(manifest: CorpusManifest) -> list[Block]:
    _, kept, _ = totals(manifest)
    rows: list[list[Cell]] = [
        [pictures.name(reason), figure(pairs), share(pairs, sum(kept.values())), *_explain(reason, "=drop")]
        for reason, pairs in _by_reason(corpus.warned for corpus in manifest.corpora).items()
    ]
    head = ["warning", "pairs", "of all kept", "meaning", "to drop them"]
    return [Table("Pairs that are kept though a filter objects", head, rows) if rows else "None."]


def _explain(reason: str, value: str = "") -> tuple[str, Code]:
    return EXPLAINED[REASONS[reason]], Code(f"{REASONS[reason].setting}{value}")


def _lengths(manifest: CorpusManifest) -> list[Block]:
    """Of all kept pairs. Empty for a manifest without statistics."""
    tally, splits = manifest.statistics.get("tally"), manifest.statistics.get("pieces")
    if not tally or not splits:
        return []
    pieces, half = [], []
    for side in SIDES:
        mine = [figures[side] for figures in splits.values()]
        pieces.append([sum(column) for column in zip(*(each["lengths"] for each in mine), strict=True)])
        half.append(at_most(pieces[-1], 0.5, max(each["longest"] for each in mine)))
    alt = f"Histogram: half of the sources have at most {half[0]} pieces, half of the targets at most {half[1]}."
    by_pieces = pictures.piece_histogram(pieces, alt)
    alt = "Histogram of the characters of sources and targets."
    by_characters = pictures.character_histogram([tally["lengths"][side] for side in SIDES], alt)
    drawn = [
        (by_pieces, "Pieces. The few longest texts share the last bar."),
        (by_characters, "Characters, on a logarithmic axis. The first bar holds all texts shorter than 10."),
    ]
    return [
        "Of all kept pairs, in pieces and in characters. A word is what stands between spaces.",
        Pictures(drawn if charts.INSTALLED else []),
        _words(manifest),
        _pieces(manifest),
    ]


def _words(manifest: CorpusManifest) -> Table:
    tally, splits = manifest.statistics["tally"], manifest.statistics["pieces"]
    rows = []
    for side, language, size in zip(SIDES, manifest.languages, manifest.vocab_sizes, strict=True):
        words, characters = tally["words"][side], tally["characters"][side]
        pieces = sum(mine[side]["pieces"] for mine in splits.values())
        ratios = [decimal(pieces / max(1, words), 2), decimal(characters / max(1, pieces), 2)]
        rows.append([f"{side} ({language})", *map(figure, (size, words, characters, pieces)), *ratios])
    head = ["side", "vocabulary", "words", "characters", "pieces", "pieces per word", "characters per piece"]
    return Table("Text of all kept pairs", head, rows)


def _pieces(manifest: CorpusManifest) -> Table:
    """A bound of the model's length cuts or refuses what is longer: the last columns say what that would cost."""
    rows = []
    for split in SPLITS:
        for side, mine in manifest.statistics["pieces"].get(split, {}).items():
            bounds = [at_most(mine["lengths"], part, mine["longest"]) for part in (0.5, 0.95, 0.99)]
            counts = (sum(mine["lengths"]), mine["pieces"], mine["unknown"], *bounds, mine["longest"])
            rows.append([f"{split} {side}", *map(figure, counts)])
    bounds_told = ["half have at most", "95 % at most", "99 % at most", "longest"]
    return Table("Pieces of each split", ["texts", "pairs", "pieces", "unknown pieces", *bounds_told], rows)


def _show_held_out(manifest: CorpusManifest) -> list[Block]:
    """Where the held-out sets come from, and what of them was met again among the training pairs."""
    chosen = manifest.settings.get("held_out")
    if not chosen:
        return []
    rows = []
    for split in HELD_OUT:
        origin = "given: " + ", ".join(chosen[split]) if chosen[split] else "split off from the corpora"
        rows.append([split, figure(sum(shard.rows for shard in manifest.splits.get(split, []))), origin])
    given = [bool(chosen[split]) for split in HELD_OUT]
    told: list[Cell] = []
    if not all(given):
        told.append(
            "What is split off goes by whole groups: sources that differ only in case, accents, digits and punctuation stay together, "
            "so none of them is in two sets. "
        )
    if any(given) and chosen["leaks"] == "off":
        told += ["Pairs of the corpora were not compared with the given sets (", Code("held_out.leaks=off"), ")."]
    elif any(given):
        found = sum(corpus.dropped.get("leak", 0) for corpus in manifest.corpora)
        warned = sum(corpus.warned.get("leak", 0) for corpus in manifest.corpora)
        same = f"Pairs of the corpora that are the same as one of the given sets, or alike to {chosen['near']:g} or more: "
        told += [same, Strong(figure(found)), " dropped, ", Strong(figure(warned)), " kept with a warning."]
    return [Paragraph(told), Table("Held-out sets", ["set", "pairs", "origin"], rows)]


def _show_dropped(manifest: CorpusManifest) -> list[Block]:
    """The first dropped pairs of each reason, to look them up in their files."""
    shown = manifest.statistics.get("tally", {}).get("shown", [])
    if not shown:
        return []
    head = ["place", *(f"{side} ({language})" for side, language in zip(SIDES, manifest.languages, strict=True))]
    told: list[Cell] = [f"Up to {SHOWN} for each corpus and reason, and up to {SHOWN_CHARACTERS} characters of each text."]
    if not manifest.settings.get("keep_dropped"):
        told += [" ", Code("--keep-dropped"), " writes all of them to ", Code("dropped/"), "."]
    blocks: list[Block] = [Paragraph(told)]
    for reason, pairs in _by_reason(corpus.dropped for corpus in manifest.corpora).items():
        rows: list[list[Cell]] = []
        for row in shown:
            if row["reason"] == reason:
                segment = f" ({row['segment']})" if row["segment"] else ""
                place = Code(f"{manifest.inputs[row['file']].paths[0]}:{row['line']}{segment}")
                texts = [row[side] or "" for side in SIDES]
                rows.append([place, *map(Quote, texts, manifest.languages)])
        title = pictures.name(reason)
        table = Table(f"First dropped as {title}", head, rows)
        blocks.append(Details(f"{title}: {len(rows)} of {figure(pairs)}", [table]))
    return blocks


def _inputs(manifest: CorpusManifest) -> list[list[Cell]]:
    return [
        [manifest.corpora[entry.corpus].name, Code(path), Code(sha256)]
        for entry in manifest.inputs
        for path, sha256 in zip(entry.paths, entry.sha256, strict=True)
    ]


def totals(manifest: CorpusManifest) -> tuple[int, dict[str, int], dict[str, int]]:
    """Over all corpora: read, kept by split, dropped by reason in the order the filters are asked."""
    kept: dict[str, int] = {split: sum(corpus.kept.get(split, 0) for corpus in manifest.corpora) for split in SPLITS}
    dropped = _by_reason(corpus.dropped for corpus in manifest.corpora)
    return sum(corpus.read for corpus in manifest.corpora), kept, dropped


def _by_reason(tables: Iterable[dict[str, int]]) -> dict[str, int]:
    counts = list(tables)
    added = {label: sum(table.get(label, 0) for table in counts) for label in REASONS}
    return {label: pairs for label, pairs in added.items() if pairs}
