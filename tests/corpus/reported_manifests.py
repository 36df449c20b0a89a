"""Manifests to report on, and a reader of what the report says."""

from html.parser import HTMLParser
from typing import Any

from limelight.corpus.cleaning.reasons import EXPLAINED
from limelight.corpus.config import CorpusSettings, HeldOutSettings, PrepareSettings
from limelight.corpus.encode import PIECE_LENGTHS
from limelight.corpus.exchange.settle import LENGTHS
from limelight.corpus.manifest import CorpusEntry, CorpusManifest, FileEntry, InputEntry, Shard

VOID = {"meta", "img", "br", "link", "input"}


class Reader(HTMLParser):
    """Tables as rows of text by caption, all tags with their attributes, and whether every tag is closed in its turn."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tables: dict[str, list[list[str]]] = {}
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.headings: set[str] = set()
        self._open: list[str] = []
        self._rows: list[list[str]] = []
        self._cell = self._caption = ""
        self.feed(html)
        self.close()
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)
        if tag == "table":
            self._rows, self._caption = [], ""
        elif tag == "tr":
            self._rows.append([])
        elif tag in ("td", "th"):
            self._cell = ""

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self._cell += data
        self._caption += data if self._open and self._open[-1] == "caption" else ""
        self.headings |= {data} if self._open and self._open[-1] == "h2" else set()
        self.words.append(data)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag
        if tag in ("td", "th"):
            self._rows[-1].append(self._cell)
        elif tag == "table":
            assert self._caption not in self.tables
            self.tables[self._caption] = self._rows

    def records(self, caption: str) -> list[dict[str, str]]:
        """Rows of a table by the titles of its columns."""
        rows = self.tables[caption]
        first = next(i for i, row in enumerate(rows) if row[0])
        return [dict(zip((title.replace("\xa0", " ") for title in rows[first]), row, strict=True)) for row in rows[first + 1 :]]


def corpus(name: str, kept: dict[str, int], dropped: dict[str, int], warned: dict[str, int] | None = None) -> CorpusEntry:
    read = sum(kept.values()) + sum(dropped.values())
    return CorpusEntry(name=name, weight=1.0, read=read, kept=kept, dropped=dropped, warned=warned or {})


DIRTY = (
    corpus(
        "memory",
        {"train": 81_234, "valid": 17},
        {"duplicate": 5_003, "copied": 12, "leak": 7},
        {"numbers": 9, "leak": 2},
    ),
    corpus("web", {"train": 1_300}, {"empty": 41, "copied": 5, "wrong_language": 1}, {"numbers": 4}),
    corpus("nothing", {}, {}),
    corpus("test", {"test": 250}, {"empty": 1}),
)


def manifest(corpora: tuple[CorpusEntry, ...] = DIRTY, hostile: str = "plain", **settings: Any) -> CorpusManifest:
    """As `prepare` leaves it. `hostile` stands wherever a user's text may stand."""
    corpora = tuple(entry.model_copy(update={"name": f"{entry.name} {hostile}"}) for entry in corpora)
    kept = {split: sum(entry.kept.get(split, 0) for entry in corpora) for split in ("train", "valid", "test")}
    file = FileEntry(path="x", bytes=1, sha256="00" * 32)
    chosen = PrepareSettings(
        languages=("en", "de"),
        corpora=[CorpusSettings(name=hostile, paths=[hostile])],
        held_out=HeldOutSettings(test=(hostile, "test.de")),
    )
    shown = [
        {"corpus": c, "reason": reason, "file": c, "line": 3 + c, "segment": hostile, "source": hostile, "target": ""}
        for c, entry in enumerate(corpora)
        for reason in entry.dropped
    ]
    return CorpusManifest(
        address="ab" * 32,
        text_address="cd" * 32,
        languages=("en", "de"),
        corpora=list(corpora),
        inputs=[
            InputEntry(corpus=c, paths=[f"{c}.en {hostile}", f"{c}.de"], sha256=[f"{c}e" * 32, f"{c}d" * 32]) for c in range(len(corpora))
        ],
        settings=chosen.model_dump(mode="json") | settings,
        pieces=[file],
        vocab_sizes=(8000, 8000),
        splits={split: [Shard(name=split, rows=rows, rows_by_corpus=[rows], text=file, ids=file)] for split, rows in kept.items()},
        statistics={
            "pieces": {split: {side: figures(rows, side) for side in ("source", "target")} for split, rows in kept.items()},
            "tally": {
                "shown": shown,
                "lengths": {side: spread(sum(kept.values()), len(LENGTHS)) for side in ("source", "target")},
                "words": {"source": 1001, "target": 2002},
                "characters": {"source": 7003, "target": 8004},
            },
        },
    )


def spread(pairs: int, bins: int) -> list[int]:
    """Most in the first bins, a few in the last."""
    shares = [pairs // 2 ** (i + 1) for i in range(bins)]
    return [*shares[:-1], pairs - sum(shares[:-1])]


def figures(pairs: int, side: str) -> dict[str, Any]:
    longest = 777 if pairs and side == "source" else 0
    return {
        "pieces": 3 * pairs,
        "longest": longest,
        "unknown": pairs // 7,
        "lengths": spread(pairs, len(PIECE_LENGTHS)),
    }


CLEAN = (corpus("clean", {"train": 10}, {}),)
EMPTY = (corpus("empty", {}, {}),)
ALL_DROPPED = (corpus("bad", {}, {why.label: 1 + why for why in EXPLAINED}),)
