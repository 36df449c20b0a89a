"""A parent is a translator of other languages, whose weights a new one with pieces of its own begins with (Zoph et al. 2016)."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import torch
import torch.nn.functional as F
from torch import Tensor

from limelight.bundle import Bundle, BundleSettings, read
from limelight.corpus.feeding.shards import PreparedCorpus
from limelight.corpus.reading.language_tags import closeness
from limelight.errors import ConfigError
from limelight.model.config import ModelConfig
from limelight.text.languages import Direction
from limelight.text.pieces.tags import language_piece, name_piece
from limelight.text.pieces.tokenizer import SPACE, Tokenizer
from limelight.training.config import FineTuning
from limelight.training.run_folder import RunChoice

INSIDE: Final = "\u0378"  # stands for no character and joins no piece: what follows it is cut as inside a word
MANY: Final = 1 << 30
BYTE: Final = re.compile("<0x[0-9A-F]{2}>")
Rows = list[list[int]]  # of each new piece the old pieces whose rows it begins with


def is_parent(old: BundleSettings, *new: Direction) -> bool:
    """Tell whether a text in these directions has a language that a translator was not taught."""
    first = old.languages
    known = (first[:1], first[1:]) if old.tags is None else (old.tags.list_sources(first), old.tags.list_targets(first))
    asked = [(code, some) for direction in new for code, some in zip(direction, known, strict=True)]
    return any(all(closeness(own, code) is None for own in some) for code, some in asked)


def fit_model(old: ModelConfig, prepared: PreparedCorpus) -> ModelConfig:
    (source, target), marks = prepared.manifest.vocab_sizes, prepared.manifest.marks
    if old.tie == "all" and len(prepared.manifest.pieces) > 1:
        raise ConfigError("the parent has one embedding for source and target, so both need the same pieces; leave out data.pieces.joint")
    apart = None if source == target else source
    return old.changed(
        vocab_size=target, source_vocab_size=apart, pad_token=marks.pad, start_token=marks.start, end_token=marks.end
    )  # fmt: skip


def load_first_weights(begins: FineTuning, prepared: PreparedCorpus) -> dict[str, Tensor]:
    """The weights that a run begins with: those of the translator it goes on from, or of its parent, with rows for the new pieces."""
    old = read(Path(begins.bundle))
    weights = old.weights()
    if begins.parent is None:
        return weights
    source, target = find_inherited(old, prepared.tokenizers())
    of_pieces = dict.fromkeys(("target_embedding.weight", "output.weight", "output_bias"), target) | {"source_embedding.weight": source}
    return {name: of_pieces[name].move(weight) if name in of_pieces else weight for name, weight in weights.items()}


@dataclass(frozen=True)
class InheritedRows:
    """Inherited rows tell where the row of each new piece comes from; None: nothing spells it, and it begins at the mean of all."""

    rows: list[list[int] | None]
    kept: int

    def move(self, old: Tensor) -> Tensor:
        """Rows of the parent, (V) or (V, D), become those of the new pieces."""
        wide = old.float().reshape(len(old), -1)
        wide = torch.cat([wide, wide.mean(0, keepdim=True)])
        ids = [[len(old)] if row is None else row for row in self.rows]
        starts = torch.tensor([0, *map(len, ids[:-1])]).cumsum(0)
        moved = F.embedding_bag(torch.tensor([number for row in ids for number in row]), wide, starts, mode="mean")
        return moved.reshape(len(ids), *old.shape[1:])

    def __str__(self) -> str:
        strange = self.rows.count(None)
        told = f"{self.kept:,} of {len(self.rows):,} pieces kept, {len(self.rows) - self.kept - strange:,} from their spelling"
        return told + (f", {strange:,} at the mean of all" if strange else "")


def describe_inherited(old: Bundle, prepared: PreparedCorpus) -> RunChoice:
    found = dict.fromkeys(map(str, find_inherited(old, prepared.tokenizers())))
    why = f"pieces are learnt from the new text, all other weights are those of a translator from {' to '.join(old.settings.languages)}"
    return RunChoice("parent", "; ".join(found), why)


def find_inherited(old: Bundle, new: tuple[Tokenizer, Tokenizer]) -> tuple[InheritedRows, InheritedRows]:
    """For the embedding of the source, and for that of the target; one for both where they are one matrix."""
    theirs = (old.source_tokenizer, old.target_tokenizer)
    if old.settings.model.tie == "all":
        both = _find_rows(old, theirs, new[1])
        return both, both
    return _find_rows(old, theirs[:1], new[0]), _find_rows(old, theirs[1:], new[1])


def _find_rows(old: Bundle, theirs: Sequence[Tokenizer], new: Tokenizer) -> InheritedRows:
    """`theirs` are numbered alike; where there are two, the one that needs fewer pieces spells a piece."""
    first, model, tags = theirs[0], old.settings.model, old.settings.tags
    hidden, controls = first.controls(), new.controls()
    known = {(piece, number in hidden): number for number, piece in enumerate(first.vocabulary)}
    languages = {**tags.target_begin, **tags.target} if tags else {}
    known |= {(language_piece(code), True): number for code, number in languages.items()}
    known |= {(name_piece(name), True): number for name, number in (tags.names if tags else {}).items()}
    special = {new.pad: model.pad_token, new.start: model.start_token, new.end: model.end_token, new.unknown: first.unknown}
    kept = {number: known.get((piece, number in controls)) for number, piece in enumerate(new.vocabulary)} | special
    strange = [n for n, before in kept.items() if before is None and n not in controls and not BYTE.fullmatch(new.vocabulary[n])]
    spelt = dict(zip(strange, _spell([new.vocabulary[number] for number in strange], theirs), strict=True))
    told = {number: [*languages.values()] for number in controls if new.vocabulary[number].startswith("<2")}
    rows = [[before] if before is not None else spelt.get(number) or told.get(number) or None for number, before in sorted(kept.items())]
    return InheritedRows(rows, sum(before is not None for before in kept.values()))


def _spell(pieces: Sequence[str], tokenizers: Sequence[Tokenizer]) -> Rows:
    """The ids that spell each piece, at the beginning of a word or inside; empty where no character of it is known."""
    texts = [piece[1:] if piece.startswith(SPACE) else INSIDE + piece for piece in pieces]
    ways: list[Rows] = []
    for tokenizer in tokenizers:
        before = len(tokenizer.encode_texts([INSIDE])[0])
        found = zip(texts, tokenizer.encode_texts([text.replace(SPACE, " ") for text in texts]), strict=True)
        cut = (ids[before:] if text.startswith(INSIDE) else ids for text, ids in found)
        ways.append([[number for number in ids if number != tokenizer.unknown] for ids in cut])
    return [min(some, key=lambda ids: len(ids) or MANY) for some in zip(*ways, strict=True)]
