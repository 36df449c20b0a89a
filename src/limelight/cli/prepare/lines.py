"""The closing lines of `limelight prepare` tell what was read, dropped, kept and cut into pieces. They end with what to do next."""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from limelight.cli.screen import clock, group_digits

if TYPE_CHECKING:
    from limelight.corpus.manifest import CorpusEntry, CorpusManifest
    from limelight.corpus.prepare import Findings


def describe_prepared(manifest: "CorpusManifest", folder: Path, seconds: float | None) -> list[str]:
    """`seconds` is None when nothing had to be done."""
    shards = [shard for split in manifest.splits.values() for shard in split]
    size = sum(shard.text.bytes + shard.ids.bytes for shard in shards) / 1e6
    if seconds is None:
        ending = f"{folder} was prepared from these inputs and settings before; nothing to do"
    else:
        ending = f"wrote {folder} ({len(shards)} shards, {size:,.1f} MB, report.html) in {clock(seconds)}"
    return [*_counts(manifest.corpora), *_pieces(manifest), *_tags(manifest), *_warnings(manifest.corpora), ending]


def describe_findings(findings: "Findings") -> list[str]:
    shown = []
    for row in findings.tally["shown"]:
        segment = f" ({row['segment']})" if row["segment"] else ""
        shown.append(f"{row['reason']}: {findings.inputs[row['file']].paths[0]}:{row['line']}{segment}")
        shown += [f"    {side}  {row[side]}" for side in ("source", "target")]
    first = ["", "the first of each kind:", *shown] if shown else []
    mistakes = [f"mistake   {problem}" for problem in findings.mistakes]
    return [*_counts(findings.corpora), *_warnings(findings.corpora), *mistakes, *first, "", "nothing was written"]


def _counts(corpora: Sequence["CorpusEntry"]) -> list[str]:
    read = sum(corpus.read for corpus in corpora)
    kept = _sum_tables(corpus.kept for corpus in corpora)
    dropped = _sum_tables(corpus.dropped for corpus in corpora)
    lines = [f"read      {group_digits(read):>12} pairs" + (f" in {len(corpora)} corpora" if len(corpora) > 1 else "")]
    lines += [f"dropped   {group_digits(sum(dropped.values())):>12}  {_share(sum(dropped.values()), read)}"]
    lines += [
        f"          {group_digits(pairs):>12}  {_share(pairs, read)}  {reason.replace('_', ' ')}"
        for reason, pairs in sorted(dropped.items(), key=lambda item: -item[1])
    ]
    lines += [
        f"kept      {group_digits(sum(kept.values())):>12}  {_share(sum(kept.values()), read)}  "
        + " · ".join(f"{split} {group_digits(kept[split])}" for split in ("train", "valid", "test") if split in kept)
    ]
    if len(corpora) > 1:
        lines += [
            f"          {group_digits(sum(corpus.kept.values())):>12} of {group_digits(corpus.read)}  {corpus.name}" for corpus in corpora
        ]
    return lines


def _pieces(manifest: "CorpusManifest") -> list[str]:
    from limelight.corpus.encode import at_most

    figures, words = manifest.statistics["pieces"]["train"], manifest.statistics["tally"]["words"]
    shared = "one vocabulary of " if len(manifest.pieces) == 1 else "vocabularies of "
    sizes = " and ".join(group_digits(size) for size in dict.fromkeys(manifest.vocab_sizes))
    lines = [f"pieces    {shared}{sizes}"]
    for side in ("source", "target"):
        mine = figures[side]
        per_word = sum(every[side]["pieces"] for every in manifest.statistics["pieces"].values()) / max(1, words[side])
        middle, most = (at_most(mine["lengths"], part, mine["longest"]) for part in (0.5, 0.95))
        lines.append(
            f"          {side}: {per_word:.2f} per word; half of the pairs have up to {middle}, 95 % up to {most}, "
            f"the longest {mine['longest']}; {group_digits(mine['unknown'])} unknown"
        )
    return lines


def _tags(manifest: "CorpusManifest") -> list[str]:
    ways = [f"          {len(manifest.directions)} directions: {manifest.described}"] if len(manifest.directions) > 1 else []
    pieces = manifest.tag_set.pieces
    return [f"tags      {' '.join(pieces)}", *ways] if pieces else []


def _warnings(corpora: Sequence["CorpusEntry"]) -> list[str]:
    from limelight.corpus.cleaning.reasons import Reason

    warned = _sum_tables(corpus.warned for corpus in corpora)
    kept = sum(sum(corpus.kept.values()) for corpus in corpora)
    return [
        f"warning   {group_digits(pairs):>12}  {_share(pairs, kept)}  {reason.replace('_', ' ')}; "
        f"kept, to drop them: {Reason[reason.upper()].setting}=drop"
        for reason, pairs in warned.items()
    ]


def _sum_tables(tables: Iterable[dict[str, int]]) -> Counter[str]:
    total = Counter[str]()
    for table in tables:
        total.update(table)
    return total


def _share(part: int, whole: int) -> str:
    percent = 100 * part / max(1, whole)
    if 0 < percent < 0.05:
        return " <0.1 %"
    return ">99.9 %" if 99.95 <= percent < 100 else f"{percent:5.1f} %"
