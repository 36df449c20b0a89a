"""`load_tokenizers` loads the tokenizers of a prepared corpus, and `check_given` checks pieces that are given.

pieces.model        SentencePiece; source.model and target.model when the sides have their own
vocabulary.json     only if the ids are not those of SentencePiece; source. and target. when the sides have their own
"""

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path

from pydantic import ValidationError

from limelight.corpus.config import PrepareSettings, SpecialIds
from limelight.corpus.manifest import FileEntry
from limelight.errors import DataError
from limelight.files import write_whole
from limelight.text.pieces.tags import TagSet
from limelight.text.pieces.tokenizer import END, PAD, START, UNKNOWN, Tokenizer
from limelight.text.pieces.vocabulary import LARGEST, Vocabulary

VOCABULARIES = ("vocabulary.json", "source.vocabulary.json", "target.vocabulary.json")


def load_tokenizers(folder: Path, pieces: Sequence[FileEntry], vocabulary: Sequence[FileEntry]) -> tuple[Tokenizer, Tokenizer]:
    """Those of a prepared folder, for source and target: one object where both sides cut alike."""
    return _tokenizers([folder / entry.path for entry in pieces], [folder / entry.path for entry in vocabulary])


def check_given(settings: PrepareSettings) -> None:
    """A model whose special pieces are not those of the batches would train on wrong ones, silently."""
    if not settings.given_pieces:
        return
    given = settings.given_pieces
    if settings.pieces.named:
        raise DataError("pieces.named is for pieces that are learnt here; leave it out, or leave out given_pieces")
    tokenizers = _tokenizers([Path(path) for path in given], [Path(path) for path in settings.given_vocabulary])
    check_tags(tokenizers[0], settings.tag_set)
    if settings.marks is not None:
        _check_special_ids(settings.marks, tokenizers)
        return
    _check_usual(given[0], tokenizers[0])
    _check_usual(given[-1], tokenizers[1])


def check_tags(source: Tokenizer, tags: TagSet) -> None:
    """Pieces that were given may lack what sources are to be told."""
    if missing := [piece for piece in tags.pieces if piece not in source.vocabulary]:
        raise DataError(
            f"the pieces that were given have no {', '.join(missing)}, so no source can be told so; leave out given_pieces (and --from) to "
            "have pieces learnt here, or leave out these languages and tags"
        )


def copy_vocabulary(given: Sequence[str], folder: Path) -> list[FileEntry]:
    """The lists of ids beside the models, as the prepared folder names them."""
    names = VOCABULARIES[:1] if len(given) == 1 else VOCABULARIES[1:]
    return [store(folder, name, Path(path).read_bytes()) for path, name in zip(given, names, strict=False)]


def store(folder: Path, name: str, content: bytes) -> FileEntry:
    write_whole(folder / name, content)
    return FileEntry(path=name, bytes=len(content), sha256=hashlib.sha256(content).hexdigest())


def read_vocabulary(path: Path) -> Vocabulary:
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST + 1)
        if len(content) > LARGEST:
            raise DataError(f"{path} has more than {LARGEST:,} bytes and is no list of pieces; check the name")
        return Vocabulary.model_validate_json(content)
    except FileNotFoundError:
        raise DataError(f"{path} does not exist; check the name, or take it from the bundle again") from None
    except ValidationError as error:
        found = error.errors(include_input=False, include_url=False)[0]
        where = ".".join(map(str, found["loc"])) or "it"
        raise DataError(f"{path} is no list of pieces with their ids ({where}: {found['msg'][:300]})") from None


def _tokenizers(models: Sequence[Path], lists: Sequence[Path]) -> tuple[Tokenizer, Tokenizer]:
    numbers = {path: read_vocabulary(path) for path in dict.fromkeys(lists)}
    sides = [(models[at], lists[at] if lists else None) for at in (0, -1)]
    made: dict[tuple[Path, Path | None], Tokenizer] = {}
    for model, ids in dict.fromkeys(sides):
        own = Tokenizer.load(model)
        made[model, ids] = Tokenizer(own.model, numbers[ids]) if ids else own
    return made[sides[0]], made[sides[1]]


def _check_usual(path: str, tokenizer: Tokenizer) -> None:
    found = (tokenizer.pad, tokenizer.unknown, tokenizer.start, tokenizer.end)
    if found != (PAD, UNKNOWN, START, END):
        raise DataError(
            f"{path} numbers its special pieces (pad, unknown, start, end) {found}, and batches need {(PAD, UNKNOWN, START, END)}; "
            "leave out given_pieces to have pieces learnt here, or say in `marks` what its model reads"
        )


def _check_special_ids(marks: SpecialIds, tokenizers: Iterable[Tokenizer]) -> None:
    problems = []
    for side, tokenizer, largest in zip(("source", "target"), tokenizers, marks.largest, strict=True):
        for name in ("pad", "end"):
            if getattr(tokenizer, name) != getattr(marks, name):
                problems.append(f"{name}={getattr(marks, name)}, but the {side} has {getattr(tokenizer, name)}")
        if largest >= tokenizer.size:
            problems.append(f"id {largest}, but the {side} has ids 0 to {tokenizer.size - 1}")
    if problems:
        listed = "\n".join(f"  - marks has {problem}" for problem in problems)
        raise DataError(f"the pieces that were given do not fit; take marks and pieces from one model:\n{listed}")
