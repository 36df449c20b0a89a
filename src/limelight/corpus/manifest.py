"""`CorpusManifest` records what `prepare` left behind as one JSON value. It has inputs, settings, counts, and every shard with its hash.

prepared/
  manifest.json             written last; a folder without it is not finished
  pieces.model              or source.model and target.model
  vocabulary.json           or one for each side; only where the ids are not those of SentencePiece
  shards/train-00000.text.arrow   the pairs as text with their provenance
  shards/train-00000.ids.arrow    the same rows as ids, memory-mapped by training
"""

import json
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from limelight.config import Settings
from limelight.corpus.config import PrepareSettings, SpecialIds
from limelight.errors import DataError
from limelight.files import write_whole
from limelight.text.languages import Direction
from limelight.text.pieces.tags import TagSet

FORMAT = 1
NAME = "manifest.json"

Split = Literal["train", "valid", "test"]
HELD_OUT: tuple[Split, ...] = ("valid", "test")
SIDES = ("source", "target")


class FileEntry(Settings):
    """An entry describes a file as it must be found: a byte more, less or other is refused."""

    path: str
    bytes: int
    sha256: str = Field(pattern="^[0-9a-f]{64}$")  # it is the name of a file in a cache


class InputEntry(Settings):
    """An entry describes a file that was read. `file` in the provenance of a pair is the position in this list."""

    corpus: int
    paths: list[str]
    sha256: list[str]


class CorpusEntry(Settings):
    """An entry says what became of one corpus: read = kept (over all splits) + the sum of dropped."""

    name: str
    weight: float
    read: int
    kept: dict[str, int]
    dropped: dict[str, int]
    warned: dict[str, int]


class Shard(Settings):
    """Rows stand in the order of their corpora, so that corpus and position within it lead to shard and row."""

    name: str
    rows: int
    rows_by_corpus: list[int]
    text: FileEntry
    ids: FileEntry


class CorpusManifest(Settings):
    format: int = FORMAT
    address: str
    text_address: str
    languages: tuple[str, str]
    corpora: list[CorpusEntry]
    inputs: list[InputEntry]
    settings: dict[str, Any]
    pieces: list[FileEntry] = Field(description="one model for both sides, or source and target")
    vocabulary: list[FileEntry] = Field(
        default=[],
        description="ids of the pieces, where others numbered them: one list for both sides, or source and target",
    )
    vocab_sizes: tuple[int, int]
    splits: dict[Split, list[Shard]]
    statistics: dict[str, Any]

    @property
    def marks(self) -> SpecialIds:
        """The ids around each text of a batch."""
        return SpecialIds(**self.settings.get("marks") or {})

    @cached_property
    def _asked(self) -> PrepareSettings | None:
        """The settings, where they were kept."""
        return PrepareSettings(**self.settings) if self.settings.get("corpora") else None

    @property
    def directions(self) -> tuple[Direction, ...]:
        """Every direction that is learnt, the first pair first."""
        return self._asked.directions if self._asked else (self.languages,)

    @property
    def described(self) -> str:
        """en to de; or of several directions all: en-de, en-fr, de-en"""
        if len(self.directions) == 1:
            return " to ".join(self.languages)
        return ", ".join("-".join(direction) for direction in self.directions)

    @property
    def both_directions(self) -> bool:
        return self._asked is not None and self._asked.both_directions

    @property
    def stored(self) -> tuple[Direction, ...]:
        """Source and target of the pairs of each corpus."""
        return self._asked.stored if self._asked else (self.languages,) * len(self.corpora)

    @property
    def pivot(self) -> str | None:
        """The language that most pairs share; None for one pair."""
        return self._asked.pivot if self._asked else None

    @property
    def names(self) -> tuple[tuple[str, ...], ...]:
        """The tags of each corpus beside the language; given sets have none."""
        asked = [corpus.tags for corpus in self._asked.corpora] if self._asked else []
        return (*asked, *((),) * (len(self.corpora) - len(asked)))

    @cached_property
    def tag_set(self) -> TagSet:
        """What sources are told; empty where there is one direction and nobody named a tag."""
        return add_row_names(self._asked.tag_set if self._asked else TagSet(), self.statistics.get("tally", {}))

    @property
    def cutting(self) -> list[FileEntry]:
        """The files that say how text is cut."""
        return [*self.pieces, *self.vocabulary]

    @property
    def files(self) -> list[FileEntry]:
        """All files that training opens."""
        return [*self.without_training, *(entry for shard in self.splits["train"] for entry in (shard.text, shard.ids))]

    @property
    def without_training(self) -> list[FileEntry]:
        """All but the shards of the training split, which are as good as all of the text."""
        shards = [shard for split, shards in self.splits.items() if split != "train" for shard in shards]
        return [*self.cutting, *(entry for shard in shards for entry in (shard.text, shard.ids))]

    @classmethod
    def load(cls, folder: Path) -> "CorpusManifest":
        path = folder / NAME
        if not path.is_file():
            raise DataError(f"{folder} is no prepared corpus: it has no {NAME}; make one with `limelight prepare ... -o {folder}`")
        return cls.decode(path.read_bytes(), str(path))

    @classmethod
    def decode(cls, content: bytes, where: str) -> "CorpusManifest":
        try:
            value = json.loads(content)
            if value.get("format") != FORMAT:
                raise DataError(f"{where} has format {value.get('format')!r}; this version reads {FORMAT}: prepare the corpus again")
            if "config.json" in str(value.get("files")):
                raise DataError(f"{where} is that of a translator and not of prepared text; a run goes on from one by --from")
            return cls.model_validate(value)
        except (ValueError, AttributeError) as error:
            raise DataError(f"{where} is damaged ({type(error).__name__}); prepare the corpus again") from None

    def encode(self) -> bytes:
        """manifest.json as it is written."""
        unused = set() if self.vocabulary else {"vocabulary"}
        return self.model_dump_json(indent=1, exclude=unused).encode() + b"\n"

    def save(self, folder: Path) -> None:
        write_whole(folder / NAME, self.encode())


def add_row_names(tags: TagSet, tally: dict[str, Any]) -> TagSet:
    """The tags of corpora, then those that only rows have, which were counted."""
    of_rows = sorted({row["tag"] for row in tally.get("tags", [])} - set(tags.names))
    return tags.changed(names=(*tags.names, *of_rows)) if of_rows else tags
