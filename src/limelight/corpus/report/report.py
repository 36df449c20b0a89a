"""The HTML report says what was read, what was dropped and why, what is left, and what it was made from:

    section(manifest)   a fragment with its own style, for a page of its own or inside another report
    page(manifest)      the page: prepared/report.html

All figures come from the manifest: equal manifests give equal bytes. The texts come from strangers, so all of them go through `text`.
"""

import json
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Any, Final

from limelight.corpus.cleaning.compact import SHOWN
from limelight.corpus.cleaning.reasons import EXPLAINED, Reason
from limelight.corpus.exchange.settle import SHOWN_CHARACTERS
from limelight.corpus.manifest import CorpusManifest, InputEntry
from limelight.corpus.report import pictures
from limelight.corpus.report.lengths import SIDES, SPLITS, lengths
from limelight.corpus.report.markup import (
    STYLE,
    Html,
    code,
    figure,
    fold,
    name,
    paragraph,
    picture,
    share,
    table,
    text,
    whole_page,
)

REASONS: Final = {why.label: why for why in Reason}
NO_PICTURES: Final = "The pictures are missing because matplotlib is not installed: <code>pip install 'limelight[report]'</code> brings it."


def page(manifest: CorpusManifest) -> str:
    source, target = manifest.languages
    return whole_page(f"Prepared corpus, {source} to {target}", section(manifest))


def section(manifest: CorpusManifest) -> str:
    parts = [
        _summary(manifest),
        "" if pictures.INSTALLED else paragraph(NO_PICTURES),
        _corpora(manifest),
        _drops(manifest),
        _warnings(manifest),
        lengths(manifest),
        _describe_held_out(manifest),
        _show_dropped(manifest),
        _inputs(manifest),
        _settings(manifest),
    ]
    return (
        f'<section class="corpus-report">\n<style>{STYLE}</style>\n' + "\n".join(filter(None, parts)) + "\n</section>"
    )


def _summary(manifest: CorpusManifest) -> str:
    """One sentence with the figures that matter."""
    read, kept, dropped = _totals(manifest)
    pairs = sum(dropped.values())
    corpora = "one corpus" if len(manifest.corpora) == 1 else f"{len(manifest.corpora)} corpora"
    source, target = map(text, manifest.languages)
    uses = " · ".join(f"{split} {figure(kept[split])}" for split in SPLITS)
    sizes = [figure(size) for size in manifest.vocab_sizes]
    vocabulary = (
        f"one vocabulary of {sizes[0]} pieces serves both languages"
        if len(manifest.pieces) == 1
        else f"the vocabularies have {sizes[0]} and {sizes[1]} pieces"
    )
    return (
        f'<p class="first">Of <strong>{figure(read)}</strong> pairs from {source} to {target} read in {corpora}, '
        f"<strong>{figure(sum(kept.values()))}</strong> ({share(sum(kept.values()), read)}) are kept ({uses}) and "
        f"<strong>{figure(pairs)}</strong> ({share(pairs, read)}) are dropped; {vocabulary}.</p>"
    )


def _corpora(manifest: CorpusManifest) -> str:
    """A row is an equation: read = kept + dropped. Then kept by split, and dropped by reason."""
    read, kept, dropped = _totals(manifest)

    def cells(title: str, read: int, kept: dict[str, int], dropped: dict[str, int]) -> list[str]:
        equation = [figure(read), figure(sum(kept.values()), "= "), figure(sum(dropped.values()), "+ ")]
        by_split = [figure(kept.get(split, 0)) for split in SPLITS]
        return [title, *equation, *by_split, *(figure(dropped.get(reason, 0)) for reason in reasons)]

    reasons = list(dropped)
    head = ["corpus", "read", "=\u00a0kept", "+\u00a0dropped", *SPLITS, *map(name, reasons)]
    groups = [("", 4), ("kept for", len(SPLITS)), *([("dropped for", len(reasons))] if reasons else [])]
    rows = [cells(corpus.name, corpus.read, corpus.kept, corpus.dropped) for corpus in manifest.corpora]
    total = cells("all", read, kept, dropped)
    return "<h2>What became of each corpus</h2>\n" + table("Pairs of each corpus", head, rows, total, groups)


def _drops(manifest: CorpusManifest) -> str:
    """The waterfall, and the same as a table."""
    read, kept, dropped = _totals(manifest)
    if not dropped:
        return "<h2>Why pairs were dropped</h2>\n" + paragraph("No pair was dropped.")
    left = [read - gone for gone in accumulate(dropped.values())]
    rows = [
        [
            name(reason),
            figure(pairs),
            share(pairs, read),
            figure(rest),
            _explain(reason),
            code(REASONS[reason].setting),
        ]
        for (reason, pairs), rest in zip(dropped.items(), left, strict=True)
    ]
    falls = ", ".join(f"{pairs} as {name(reason)}" for reason, pairs in dropped.items())
    alt = f"Waterfall: of {read} pairs read, {falls} fall away; {sum(kept.values())} are kept."
    return "\n".join(
        [
            "<h2>Why pairs were dropped</h2>",
            paragraph(
                "The filters are asked from top to bottom. The first that objects drops the pair and is its reason."
            ),
            picture(pictures.waterfall(read, list(dropped.items()), alt), "From read to kept, filter by filter."),
            table("Dropped pairs", ["reason", "pairs", "of all read", "left", "meaning", "decided by"], rows),
        ]
    )


def _warnings(manifest: CorpusManifest) -> str:
    _, kept, _ = _totals(manifest)
    rows = [
        [
            name(reason),
            figure(pairs),
            share(pairs, sum(kept.values())),
            _explain(reason),
            code(f"{REASONS[reason].setting}=drop"),
        ]
        for reason, pairs in _by_reason(corpus.warned for corpus in manifest.corpora).items()
    ]
    head = ["warning", "pairs", "of all kept", "meaning", "to drop them"]
    found = table("Pairs that are kept though a filter objects", head, rows)
    return "<h2>Warnings</h2>\n" + (found or paragraph("None."))


def _describe_held_out(manifest: CorpusManifest) -> str:
    """Where the held-out sets come from, and what of them was met again among the training pairs."""
    chosen = manifest.settings.get("held_out")
    if not chosen:
        return ""
    rows = []
    for split in SPLITS[1:]:
        origin = "given: " + ", ".join(chosen[split]) if chosen[split] else "split off from the corpora"
        rows.append([split, figure(sum(shard.rows for shard in manifest.splits.get(split, []))), origin])
    found = sum(corpus.dropped.get("leak", 0) for corpus in manifest.corpora)
    warned = sum(corpus.warned.get("leak", 0) for corpus in manifest.corpora)
    sentences = []
    if not all(chosen[split] for split in SPLITS[1:]):
        sentences.append(
            "What is split off goes by whole groups: sources that differ only in case, accents, digits and punctuation stay together, "
            "so none of them is in two sets."
        )
    if any(chosen[split] for split in SPLITS[1:]):
        sentences.append(
            "Pairs of the corpora were not compared with the given sets (<code>held_out.leaks=off</code>)."
            if chosen["leaks"] == "off"
            else f"Pairs of the corpora that are the same as one of the given sets, or alike to {chosen['near']:g} or more: "
            f"<strong>{figure(found)}</strong> dropped, <strong>{figure(warned)}</strong> kept with a warning."
        )
    sets = table("Held-out sets", ["set", "pairs", "origin"], rows)
    return "\n".join(["<h2>Overlap with held-out sets</h2>", paragraph(" ".join(sentences)), sets])


def _show_dropped(manifest: CorpusManifest) -> str:
    """The first dropped pairs of each reason, to look them up in their files."""
    shown = manifest.statistics.get("tally", {}).get("shown", [])
    if not shown:
        return ""
    sides = [f"{side} ({language})" for side, language in zip(SIDES, manifest.languages, strict=True)]
    groups = []
    for reason, pairs in _by_reason(corpus.dropped for corpus in manifest.corpora).items():
        mine = [row for row in shown if row["reason"] == reason]
        rows = [[_place(manifest.inputs, row), *_texts(manifest, row)] for row in mine]
        found = table(f"First dropped as {name(reason)}", ["place", *sides], rows)
        groups.append(fold(f"{name(reason)}: {len(rows)} of {figure(pairs)}", found))
    told = f"Up to {SHOWN} for each corpus and reason, and up to {SHOWN_CHARACTERS} characters of each text."
    if not manifest.settings.get("keep_dropped"):
        told += " <code>--keep-dropped</code> writes all of them to <code>dropped/</code>."
    return "\n".join(["<h2>Dropped pairs to look at</h2>", paragraph(told), *groups])


def _texts(manifest: CorpusManifest, row: dict[str, Any]) -> list[str]:
    return [
        Html(f'<div class="text" lang="{text(language)}" dir="auto">{text(row[side] or "")}</div>')
        for side, language in zip(SIDES, manifest.languages, strict=True)
    ]


def _place(inputs: Sequence[InputEntry], row: dict[str, Any]) -> Html:
    segment = f" ({row['segment']})" if row["segment"] else ""
    place = code(f"{inputs[row['file']].paths[0]}:{row['line']}{segment}")
    return Html(f'<div class="place">{place}</div>')


def _inputs(manifest: CorpusManifest) -> str:
    rows = [
        [manifest.corpora[entry.corpus].name, code(path), code(sha256)]
        for entry in manifest.inputs
        for path, sha256 in zip(entry.paths, entry.sha256, strict=True)
    ]
    return "<h2>Inputs</h2>\n" + table("Files that were read", ["corpus", "file", "SHA-256"], rows)


def _settings(manifest: CorpusManifest) -> str:
    lines = json.dumps(manifest.settings, indent=2, ensure_ascii=False, sort_keys=True).split("\n")
    written = "\n".join(map(text, lines))
    return "<h2>Settings</h2>\n" + fold("All settings", Html(f"<pre>{written}</pre>"))


def _totals(manifest: CorpusManifest) -> tuple[int, dict[str, int], dict[str, int]]:
    """Over all corpora: read, kept by split, dropped by reason in the order the filters are asked."""
    kept: dict[str, int] = {split: sum(corpus.kept.get(split, 0) for corpus in manifest.corpora) for split in SPLITS}
    dropped = _by_reason(corpus.dropped for corpus in manifest.corpora)
    return sum(corpus.read for corpus in manifest.corpora), kept, dropped


def _by_reason(tables: Iterable[dict[str, int]]) -> dict[str, int]:
    counts = list(tables)
    added = {label: sum(table.get(label, 0) for table in counts) for label in REASONS}
    return {label: pairs for label, pairs in added.items() if pairs}


def _explain(reason: str) -> str:
    return EXPLAINED[REASONS[reason]]
