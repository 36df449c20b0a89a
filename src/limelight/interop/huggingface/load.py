"""A Hugging Face folder becomes a bundle: config, pieces, weights, search, languages, with every problem at once.

Nothing in the folder runs: JSON within bounds, SentencePiece, safetensors, or tensors out of a .bin. `auto_map`, which names code, is
not looked at. A folder that Limelight exported carries its settings in config.json and becomes the same bundle again, bit for bit.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from limelight.bundle import BundleSettings, BundleTags, write
from limelight.bundle.layout import refusal
from limelight.bundle.strict_json import LARGEST
from limelight.bundle.tags import LANGUAGE
from limelight.errors import ConfigError, ModelFileError
from limelight.interop.architecture import ARCHITECTURES, Architecture
from limelight.interop.file_names import CARD, CONFIG, GENERATION
from limelight.interop.huggingface.generation import read_search
from limelight.interop.language_codes import find, shorten
from limelight.interop.published_pieces import PublishedPieces, absent_pieces, read_pieces, read_published
from limelight.interop.stored_weights import read_weights, weight_files
from limelight.model.config import ModelConfig
from limelight.text.pieces.tokenizer import Tokenizer
from limelight.text.pieces.vocabulary import Vocabulary

OURS = "limelight"
NAMED = re.compile(r"opus-mt(?:-tc-(?:big|base|small|tiny))?-([a-z]{2,8})-([a-z]{2,8})(?:$|[^a-zA-Z])", re.IGNORECASE)
LICENSE = re.compile(rb'^license: *"?([\w.+-]{1,60})"? *$', re.MULTILINE)
FIX = "each line says what stands in the way; a folder that was not fully downloaded is fetched again"


@dataclass(frozen=True)
class HuggingFaceImport:
    folder: Path
    model_class: str
    tokenizer_class: str
    settings: BundleSettings
    parameters: int
    notices: tuple[str, ...]


def import_folder(
    path: Path,
    output: Path,
    languages: tuple[str | None, str | None] = (None, None),
    force: bool = False,
    name: str | None = None,
) -> HuggingFaceImport:
    """Write the bundle `output`. `languages`: source and target, where the model has several or does not say; `name`: its name on a hub."""
    if not path.is_dir():
        raise ModelFileError(
            f"{path} {'is a file' if path.exists() else 'does not exist'}; give the folder of a model, or its name on a hub"
        )
    config = _json(path, CONFIG)
    architecture = _architecture(path, config)
    problems: list[str] = []
    ours = _section(config, architecture, problems)
    if not ours and "quantization_config" in config:
        problems.append(f"{CONFIG}: has quantization_config; import the model that was quantized, and quantize the export")
    notices: list[str] = []
    if ours:
        model: ModelConfig | None = ours.model
    else:
        model, notices = _gather(problems, lambda: architecture.read(config)) or (None, notices)
    pieces = weights = None
    if model is not None:
        pieces = _gather(problems, lambda: read_pieces(path, architecture.model_type, model))
        found = _gather(problems, lambda: read_weights(path, architecture, model))
        if found is not None:
            model, weights, more = found
            notices += more
            if ours and model != ours.model:
                problems.append(f"{CONFIG}: {OURS} says how the weights are tied, or has a bias, and the weights say otherwise")
    else:
        problems += absent_pieces(path, architecture.model_type)
        _gather(problems, lambda: weight_files(path))
    if problems or model is None or pieces is None or weights is None:
        raise refusal(path, problems, "cannot be imported", FIX)
    if "auto_map" in config:
        notices.append("auto_map names code of the model's own; it is not run, and not needed")
    generation = _json(path, GENERATION) if (path / GENERATION).is_file() else {}
    if ours is None:
        search, more = read_search(config, generation, model)
        notices += more
        settings = _settings(path, name, config, architecture, model, pieces, languages).changed(search=search)
    else:
        settings = _prefer(ours, languages)
    # A bundle of ours had no vocabulary where its ids are those of SentencePiece.
    own = ours is not None and all(_is_own(*pair) for pair in zip(pieces.models, pieces.vocabularies, strict=True))
    vocabulary = None if own else pieces.vocabularies
    write(output, settings, weights, pieces.models, license_of(path), force, vocabulary)
    parameters, kinds = sum(w.numel() for w in weights.values()), (architecture.model_class, pieces.tokenizer_class)
    return HuggingFaceImport(output, *kinds, settings, parameters, tuple(notices))


def _json(folder: Path, name: str) -> dict[str, Any]:
    if not (folder / name).exists():
        raise refusal(folder, [f"{name}: is missing"], "cannot be imported", "give the folder that has it")
    try:
        return read_published(folder, name, LARGEST)
    except ConfigError as error:
        raise refusal(folder, error.problems, "cannot be imported", FIX) from None


def _architecture(folder: Path, config: Mapping[str, Any]) -> Architecture:
    kind = config.get("model_type")
    if isinstance(kind, str) and kind in ARCHITECTURES:
        return ARCHITECTURES[kind]
    known = ", ".join(f"{one.model_type} ({one.model_class})" for one in ARCHITECTURES.values())
    problems = [f"{CONFIG}: has model_type={str(kind)[:99]!r}"]
    raise refusal(folder, problems, "cannot be imported", f"the architectures that can be are {known}")


def _gather(problems: list[str], attempt: Any) -> Any:
    """What the attempt gives; its problems join the others, and None."""
    try:
        return attempt()
    except ConfigError as error:
        problems += error.problems or [str(error)]
        return None


def _section(config: Mapping[str, Any], architecture: Architecture, problems: list[str]) -> BundleSettings | None:
    """The settings of a bundle that was exported, if they are there: checked like any others, and against the rest of the file."""
    if OURS not in config:
        return None
    section = config[OURS]
    try:
        settings = BundleSettings(**section)
    except ConfigError as error:
        problems += [f"{CONFIG}: {OURS}: {problem[:300]}" for problem in error.problems]
        return None
    except (TypeError, RecursionError) as error:
        problems.append(f"{CONFIG}: {OURS} cannot be understood ({str(error)[:300]})")
        return None
    if misfits := architecture.misfits(settings.model):
        problems.append(f"{CONFIG}: {OURS} has {', '.join(misfits)}, which {architecture.model_class} cannot have")
        return None
    for key, value in architecture.write(settings.model).items():
        if config.get(key) != value:
            problems.append(f"{CONFIG}: has {key}={str(config.get(key))[:99]}, but {OURS} says {str(value)[:99]}; remove one of them")
    return settings


def _prefer(ours: BundleSettings, asked: tuple[str | None, str | None]) -> BundleSettings:
    """A bundle of ours with other languages, or, of one that has several directions, with another of them as the usual one."""
    if ours.tags is None:
        return ours.changed(languages=tuple(b or a for a, b in zip(ours.languages, asked, strict=True)))
    aimed = ours.aim(asked[1], asked[0])
    if aimed.languages not in ours.directions:
        trained = ", ".join("-".join(pair) for pair in ours.directions[:20])
        raise ConfigError(f"the model was never taught {'-'.join(aimed.languages)}; as the usual direction give one of {trained}")
    others = (pair for pair in ours.tags.directions if pair != aimed.languages)
    tags = ours.tags.changed(directions=(aimed.languages, *others) if ours.tags.directions else ())
    begin = (aimed.source_begin, aimed.target_begin) if ours.source_begin or ours.target_begin else ((), ())
    return ours.changed(languages=aimed.languages, tags=tags, source_begin=begin[0], target_begin=begin[1])


def _settings(
    folder: Path,
    name: str | None,
    config: Mapping[str, Any],
    architecture: Architecture,
    model: ModelConfig,
    pieces: PublishedPieces,
    asked: tuple[str | None, str | None],
) -> BundleSettings:
    called = name or folder.resolve().name
    languages = _languages(called, config, pieces, asked)
    tags, begin = None, (tuple[int, ...](), tuple[int, ...]())
    if pieces.languages:
        tags, languages = _tags(pieces, languages)
        begin = tags.begin(languages)
    said = re.sub(r"[\x00-\x1f`]", " ", called)[:200]
    return BundleSettings(
        made_by=f"{said} ({architecture.model_class}), imported by limelight {version('limelight')}",
        languages=languages,
        model=model,
        normalization=(),  # their SentencePiece models do it
        source_begin=begin[0],
        target_begin=begin[1],
        **({} if tags is None else {"tags": tags}),
    )


def _tags(pieces: PublishedPieces, asked: tuple[str, str]) -> tuple[BundleTags, tuple[str, str]]:
    """All languages of a model, by the codes that people write; and those that were asked for, which are the usual direction.

    Marian is told the target's language before the source; others are told each language on its own side.
    """
    known = tuple(code for code in pieces.languages if re.match(LANGUAGE, code))
    short = shorten(known)
    ids = {short[code]: pieces.languages[code] for code in known}
    target = short[find(asked[1], known)]
    if pieces.tokenizer_class == "MarianTokenizer":
        return BundleTags(target=ids), (asked[0], target)
    return BundleTags(source=ids, target_begin=ids), (short[find(asked[0], known)], target)


def _languages(called: str, config: Mapping[str, Any], pieces: PublishedPieces, asked: tuple[str | None, str | None]) -> tuple[str, str]:
    """What was asked for, else what the tokenizer says, else what the model is called: opus-mt-en-de."""
    names = (called, config.get("_name_or_path"))
    found = next((match for one in names if isinstance(one, str) and (match := NAMED.search(one))), None)
    many = pieces.languages and pieces.tokenizer_class != "MarianTokenizer"
    said = pieces.said if not found else (pieces.said[0] or found[1].lower(), pieces.said[1] or found[2].lower())
    source = asked[0] or (None if many else said[0])
    target = asked[1] or (None if pieces.languages else said[1])
    if source and target:
        return source, target
    missing = " and ".join(flag for flag, code in (("--source", source), ("--target", target)) if not code)
    choices = f"; the model has {', '.join(sorted(pieces.languages))}" if pieces.languages else ""
    raise ConfigError(f"{called} does not say its languages: give {missing}, such as --source en --target de{choices}")


def _is_own(model: bytes, vocabulary: Vocabulary) -> bool:
    own, v = Tokenizer(model), vocabulary
    return v.pieces == tuple(own.learnt) and (v.pad, v.unknown, v.end) == (own.pad, own.unknown, own.end)


def license_of(folder: Path) -> str | None:
    """From the metadata of the card, which a hub reads too."""
    try:
        with (folder / CARD).open("rb") as file:
            head, _, rest = file.read(LARGEST).removeprefix(b"---\n").partition(b"\n---")
    except OSError:
        return None
    found = LICENSE.search(head) if rest else None
    return found[1].decode() if found else None
