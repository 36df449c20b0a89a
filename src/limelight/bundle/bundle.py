"""A bundle is verified before it is parsed, and is written beside its place, read back and renamed as a whole."""

import json
import shutil
from collections.abc import Container, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from limelight.bundle.card import card
from limelight.bundle.layout import AGAIN, CARD, CONFIG, GLOSSARY, MANIFEST, PIECES, VOCABULARIES, WEIGHTS, pick_files, refusal
from limelight.bundle.manifest import Entry, difference, relist, verify
from limelight.bundle.settings import BundleSettings
from limelight.bundle.strict_json import read_json, settings_of
from limelight.bundle.tags import BundleTags
from limelight.bundle.versions import LEARNT, find_version
from limelight.errors import DataError, ModelFileError
from limelight.files import Stamp, link_file, stamp_of, whole_folder
from limelight.text.pieces.tokenizer import Tokenizer
from limelight.text.pieces.vocabulary import LARGEST, Vocabulary

if TYPE_CHECKING:  # what the weights need: a bundle that is exported runs without them
    import torch
    from torch import Tensor

    from limelight.model.transformer import Transformer

Kept = TypeVar("Kept")


@dataclass(frozen=True)
class Bundle:
    """A bundle is all that is needed to translate. The weights are loaded when asked for."""

    folder: Path
    settings: BundleSettings
    source_tokenizer: Tokenizer
    target_tokenizer: Tokenizer  # the same object when both sides share their pieces
    verified: Stamp  # which file of weights was verified: another one may take its place
    unverified: Entry | None = None  # of the weights, when they are to be verified when they are loaded

    def weights(self) -> "dict[str, Tensor]":
        """Every weight by name, checked against the model: none missing, none more, in its shape, finite."""
        from limelight.bundle.weights import load_weights

        if stamp_of(self.folder / WEIGHTS) != self.verified:
            raise refusal(self.folder, [f"{WEIGHTS}: was changed after it was verified; read the bundle again"])
        if self.unverified is not None and (problem := difference(self.folder, self.unverified)):
            raise refusal(self.folder, [problem])
        return load_weights(self.folder, self.settings.model)

    def load_model(self, dtype: "torch.dtype | None" = None, device: "torch.device | str" = "cpu") -> "Transformer":
        """Ready to translate: in eval mode, in float32 unless asked, without the time that random weights would take."""
        import torch

        from limelight.bundle.weights import empty_model

        model = empty_model(self.settings.model)
        model.load_state_dict(self.weights(), assign=True)
        for module in model.modules():
            tables = dict(module.named_buffers(recurse=False))  # of positions: computed, not stored
            for name, table in tables.items():
                module.register_buffer(name, torch.empty(table.shape, dtype=table.dtype), persistent=False)
            if tables:
                module.reset_parameters()  # type: ignore[operator]
        return model.to(device, dtype or torch.float32).eval()


def read(folder: Path, weights: bool = True) -> Bundle:
    """A bundle, or the one of a run, in the version that is in use. Else a ModelFileError that lists every file that is not as written.

    Without `weights` these are verified when they are loaded, and never where an export runs: a large file takes seconds.
    """
    try:
        folder = _find(folder)
        stamp = stamp_of(folder / WEIGHTS)
        listed = verify(folder, None if weights else WEIGHTS)
        settings = settings_of(BundleSettings, folder, CONFIG, read_json(folder, CONFIG)[1])
        names = pick_files(PIECES, listed)
        source, target = _read_tokenizers(folder, names, listed)
        if problems := _token_problems(settings, names, source, target):
            raise refusal(folder, problems)
        return Bundle(folder, settings, source, target, stamp, None if weights else listed[WEIGHTS])
    except OSError as error:
        raise ModelFileError(f"{folder} cannot be read: {error.strerror} ({error.filename})") from None


def write(
    folder: Path,
    settings: BundleSettings,
    weights: "Mapping[str, Tensor]",
    pieces: bytes | tuple[bytes, bytes],
    license: str | None = None,
    force: bool = False,
    vocabulary: Vocabulary | tuple[Vocabulary, Vocabulary] | None = None,
) -> None:
    """The folder appears as a whole, and only if it can be read. `force` replaces a bundle, and nothing else.

    `vocabulary`: the ids of the pieces, one list or one for each side, unless they are those of SentencePiece.
    """
    from limelight.bundle.weights import save_weights, weight_problems

    folder = folder.resolve()
    if folder.exists() and not force:
        raise ModelFileError(f"{folder} exists already; give another name, or force=True to replace a bundle")
    if folder.exists() and not ((folder / MANIFEST).is_file() and (folder / WEIGHTS).is_file()):
        raise ModelFileError(f"{folder} is no bundle and will not be replaced; give another name")
    if (folder / LEARNT).exists():
        raise ModelFileError(f"{folder} has learnt from corrections, and that would be lost; give another name")
    if problems := weight_problems(weights, settings.model):
        raise refusal(folder, problems, "was not written", "a bundle holds what its settings say, and finite weights")
    contents = {
        CONFIG: settings.encode(),
        CARD: card(settings, weights, license).encode(),
        **_name_sides(PIECES, pieces),
        **{
            name: json.dumps(numbers.model_dump(mode="json"), ensure_ascii=False).encode() + b"\n"
            for name, numbers in _name_sides(VOCABULARIES, vocabulary).items()
            if numbers is not None
        },
    }
    keeps = _has_glossary(folder, settings.languages)
    with whole_folder(folder) as beside:
        for name, content in contents.items():
            (beside / name).write_bytes(content)
        if keeps:
            shutil.copyfile(folder / GLOSSARY, beside / GLOSSARY)
        save_weights(beside, weights)
        relist(beside)
        try:
            read(beside)
        except ModelFileError as error:
            found = str(error).removesuffix(f"\n{AGAIN}")
            raise ModelFileError(found.replace(f"{beside} cannot be used", f"{folder} was not written")) from None


def _has_glossary(folder: Path, languages: tuple[str, str]) -> bool:
    """Whether what is replaced has a person's own terms, and for these languages."""
    if not (folder / GLOSSARY).is_file() or (folder / GLOSSARY).is_symlink():
        return False
    with suppress(ModelFileError):
        return read(folder, weights=False).settings.languages == languages
    return False


def amend(folder: Path, **changes: Any) -> None:
    """Other settings for the same weights: amend(Path("en-de"), confidence=...). A whole new folder takes the place of the old one."""
    bundle = read(folder)
    with edit_copy(bundle) as beside:
        put_settings(beside, bundle.settings.changed(**changes))


@contextmanager
def edit_copy(bundle: Bundle, left_out: str = "") -> Iterator[Path]:
    """A copy of the bundle, to be changed in the block; it takes the bundle's place, listed anew, if it can be read."""
    folder = bundle.folder.resolve()

    def ignore(place: str, names: list[str]) -> set[str]:
        return {left_out} & set(names) if Path(place) == folder else set()

    with whole_folder(folder) as beside:
        shutil.copytree(folder, beside, copy_function=link_file, ignore=ignore, dirs_exist_ok=True)
        yield beside
        relist(beside)
        read(beside)


def put_settings(folder: Path, settings: BundleSettings) -> None:
    """config.json is replaced. It may be a link, and what it leads to stays as it is, for a process that reads the old folder now."""
    (folder / CONFIG).unlink()
    (folder / CONFIG).write_bytes(settings.encode())


def _find(folder: Path) -> Path:
    wanted = "give the folder of a bundle or of a run, or make one with limelight train or limelight import"
    if not folder.is_dir():
        raise ModelFileError(f"{folder} {'is a file' if folder.exists() else 'does not exist'}; {wanted}")
    folder = find_version(folder)
    for place in (folder, folder / "bundle"):
        lies_there = {path.name for path in place.iterdir()} if place.is_dir() else set()
        if "shards" in lies_there:
            raise ModelFileError(f"{folder} is a prepared corpus; {wanted}")
        if lies_there & {MANIFEST, CONFIG, WEIGHTS}:
            return place
    raise ModelFileError(f"{folder} is no bundle: neither it nor {folder / 'bundle'} has a {MANIFEST}; {wanted}")


def _read_tokenizers(folder: Path, names: tuple[str, str], listed: Container[str]) -> tuple[Tokenizer, Tokenizer]:
    """Of the source and of the target: one object when both have the same pieces and ids."""
    lists = pick_files(VOCABULARIES, listed)
    numbers = {name: settings_of(Vocabulary, folder, name, read_json(folder, name, LARGEST)[1]) for name in lists if name in listed}
    source, target = zip(names, lists, strict=True)
    made = {pair: _read_tokenizer(folder, pair[0], numbers.get(pair[1])) for pair in {source, target}}
    return made[source], made[target]


def _read_tokenizer(folder: Path, name: str, numbers: Vocabulary | None) -> Tokenizer:
    try:
        return Tokenizer((folder / name).read_bytes(), numbers)
    except (DataError, ValueError, LookupError) as error:  # SentencePiece puts damaged bytes into its messages
        raise refusal(folder, [f"{name}: {error}"]) from None


def _token_problems(settings: BundleSettings, names: tuple[str, str], source: Tokenizer, target: Tokenizer) -> list[str]:
    """Where pieces and model do not mean the same: a model would read other words than were written."""
    c = settings.model
    problems = []
    if source.vocabulary != target.vocabulary and c.tie == "all":
        problems.append(f"{CONFIG}: has tie=all, but {names[0]} and {names[1]} differ; one matrix cannot serve both")
    for name, tokenizer, size in zip(names, (source, target), (c.source_vocab, c.vocab_size), strict=True):
        if tokenizer.size != size:
            problems.append(f"{name}: has {tokenizer.size:,} pieces, but the model of {CONFIG} has {size:,}")
        if tokenizer.pad != c.pad_token:
            problems.append(f"{name}: pads with id {tokenizer.pad}, but {CONFIG} has pad_token={c.pad_token}")
        if tokenizer.end != c.end_token:
            problems.append(f"{name}: ends with id {tokenizer.end}, but {CONFIG} has end_token={c.end_token}")
    # Marian starts with the padding, M2M100 with the end.
    if c.start_token not in (target.start, target.pad, target.end):
        problems.append(f"{names[1]}: starts with id {target.start}, but {CONFIG} has start_token={c.start_token}")
    if settings.tags is not None:
        problems += _tag_problems(settings.tags, names, source, target)
    return list(dict.fromkeys(problems))


def _tag_problems(tags: BundleTags, names: tuple[str, str], source: Tokenizer, target: Tokenizer) -> list[str]:
    """Tags that a text could spell, or that a translation would show."""
    problems = []
    for fields, file, tokenizer in ((("source", "target", "names"), names[0], source), (("target_begin",), names[1], target)):
        control = tokenizer.controls() - {tokenizer.unknown}
        problems += [
            f"{CONFIG}: has tags.{field}.{key}={number}, which is no control piece of {file}"
            for field in fields
            for key, number in getattr(tags, field).items()
            if number not in control
        ]
    return problems


def _name_sides(names: tuple[str, str, str], given: Kept | tuple[Kept, Kept]) -> dict[str, Kept]:
    """What both sides share, or what each has, by the name of its file."""
    source, target = given if isinstance(given, tuple) else (given, given)
    return {names[0]: target} if source == target else {names[1]: source, names[2]: target}
