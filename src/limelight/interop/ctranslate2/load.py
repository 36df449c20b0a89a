"""A CTranslate2 model is imported from its tensors: its kind, its weights under our names, its vocabularies."""

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from sentencepiece import SentencePieceTrainer
from torch import Tensor

from limelight.bundle import BundleSettings, write
from limelight.bundle.layout import refusal
from limelight.bundle.strict_json import read_json
from limelight.decoding.config import SearchSettings
from limelight.decoding.steps import Specials
from limelight.errors import ConfigError, ModelFileError
from limelight.interop.ctranslate2.file import EngineModel, read_model
from limelight.interop.ctranslate2.shape import OFF, UNKNOWN, config_of
from limelight.interop.ctranslate2.spec import names
from limelight.interop.names import join_projections
from limelight.interop.quarantine import pieces_problem
from limelight.model.config import ModelConfig
from limelight.text.pieces.vocabulary import LARGEST, Vocabulary

SHARED = ("sentencepiece.model", "sentencepiece.bpe.model", "pieces.model")
# What the settings say already, or what no translation depends on.
SAID = (
    {"num_heads", "num_heads_kv", "head_dim", "multi_query_attention", "pre_norm", "activation", "scale_embeddings"}
    | {"encodings", "rotary_dim", "rotary_interleave", "rotary_base"}
    | {"alignment_heads", "alignment_layer", "embeddings_merge"}
)


@dataclass(frozen=True)
class ParsedEngineModel:
    config: ModelConfig
    weights: dict[str, Tensor]
    source: list[str]
    target: list[str]
    specials: Specials
    unknown: str  # how the unknown piece is spelt


def is_engine_model(folder: Path) -> bool:
    return (folder / "model.bin").is_file() and any(folder.glob("*vocabulary.*"))


def understand(folder: Path) -> ParsedEngineModel:
    """Every problem at once: a variable that we have no place for would change the translation."""
    model = read_model(folder / "model.bin")
    facts = _facts(folder)
    source, target = _vocabularies(folder, facts)
    problems: list[str] = []
    try:
        config = config_of(model, facts, source, target)
        weights = _weights(model, config, problems)
    except ConfigError as error:
        problems += error.problems
    except (ValueError, TypeError, LookupError, RuntimeError, OverflowError) as error:  # shapes that belong to no model
        problems.append(f"model.bin: does not fit together ({str(error)[:300]})")
    if problems:
        raise refusal(folder, problems, "cannot be imported", "only Transformers that Limelight can build are read")
    unknown, ends = facts.get("unk_token", UNKNOWN), bool(facts.get("add_source_eos", False))
    place = {piece: number for number, piece in enumerate(target)}
    specials = Specials(config.pad_token, place[unknown], config.start_token, config.end_token, ends)
    return ParsedEngineModel(config, weights, source, target, specials, unknown)


def import_model(folder: Path, output: Path, languages: tuple[str, str], force: bool = False) -> ParsedEngineModel:
    """Write a bundle. SentencePiece models are taken from source.spm and target.spm, or from one of SHARED, beside model.bin."""
    found = understand(folder)
    pieces = _sentencepiece(folder)
    long = [piece for piece in (*found.source, *found.target) if len(piece) > 1 and not _is_special(piece)]
    if pieces is None and long:
        raise ModelFileError(
            f"{folder} does not say how text becomes pieces such as {long[0]!r}: it has vocabularies and no SentencePiece model; "
            "put source.spm and target.spm beside model.bin, as its maker has them"
        )
    numbers = tuple(_numbers(side, found) for side in (found.source, found.target))
    models = pieces or (_characters(found.source), _characters(found.target))
    settings = BundleSettings(
        languages=languages,
        model=found.config,
        normalization=(),
        search=SearchSettings(beam=2, length_penalty=1.0, length_norm="power"),  # the engine's own defaults
        source_ends=found.specials.source_ends,
        made_by="an import of CTranslate2's files",
    )
    write(output, settings, found.weights, models, force=force, vocabulary=(numbers[0], numbers[1]))
    return found


def _sentencepiece(folder: Path) -> tuple[bytes, bytes] | None:
    """Parsed in a process of its own first: these are bytes of somebody else, and the parser is not ours."""
    pairs = [("source.spm", "target.spm"), *((name, name) for name in SHARED)]
    found = next((pair for pair in pairs if all((folder / name).is_file() for name in pair)), None)
    if found is None:
        return None
    models = {}
    for name in found:
        with (folder / name).open("rb") as file:
            models[name] = file.read(LARGEST)
        if problem := pieces_problem(models[name]):
            raise ModelFileError(f"{folder / name} {problem}; get it again")
    return models[found[0]], models[found[1]]


def _is_special(piece: str) -> bool:
    return piece.startswith("<") and piece.endswith(">")


def _facts(folder: Path) -> dict[str, Any]:
    if not (folder / "config.json").is_file():
        return {}  # before version 3 the engine had none, and its defaults held
    _, value = read_json(folder, "config.json")
    value = {key: part for key, part in value.items() if part is not None}  # null: as if it were not there
    if wrong := [key for key in value if key.endswith("_token") and not isinstance(value[key], str)]:
        raise ModelFileError(f"{folder / 'config.json'} has {wrong[0][:99]}={str(value[wrong[0]])[:99]}, which is no piece; get it again")
    return value


def _vocabularies(folder: Path, facts: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """The pieces of both sides. The engine adds the unknown piece at the end where it is missing."""
    found = []
    for side in ("source", "target"):
        paths = [folder / f"{name}_vocabulary.{kind}" for name in (side, "shared") for kind in ("json", "txt")]
        path = next((path for path in paths if path.is_file()), None)
        if path is None:
            raise ModelFileError(f"{folder} has no {side}_vocabulary.json and no shared_vocabulary.json; get all its files")
        with path.open("rb") as file:
            content = file.read(LARGEST + 1)
        try:
            if len(content) > LARGEST:
                raise ValueError(f"it has more than {LARGEST:,} bytes")
            listed = json.loads(content) if path.suffix == ".json" else content.decode().rstrip("\n").split("\n")
        except (ValueError, RecursionError) as error:
            raise ModelFileError(f"{path} cannot be read ({error}); get it again") from None
        if not isinstance(listed, list) or not all(isinstance(piece, str) for piece in listed):
            raise ModelFileError(f"{path} is no list of pieces; get it again")
        unknown = facts.get("unk_token", UNKNOWN)
        found.append(listed if unknown in listed else [*listed, unknown])
    return found[0], found[1]


def _weights(model: EngineModel, config: ModelConfig, problems: list[str]) -> dict[str, Tensor]:
    """Under our names; what is left over is a problem, unless it says what the settings say already."""
    variables, used, weights = dict(model.variables), set[str](), {}
    if "encoder/embeddings/weight" in variables:  # as revisions before 5 called it
        variables["encoder/embeddings_0/weight"] = variables.pop("encoder/embeddings/weight")
    for ours, theirs in names(config):
        if theirs == "decoder/projection/weight" and config.tie != "none":
            used.add(theirs)
            continue
        value = variables.get(theirs)
        used |= {theirs, f"{theirs}_scale"}
        if value is None:
            problems.append(f"model.bin: {theirs} is missing")
        else:
            weights[ours] = _ours(config, ours, _full(value, variables.get(f"{theirs}_scale")))
    if config.positions == "learned":
        for side, name in (("encoder", "source"), ("decoder", "target")):
            weights[f"{name}_positions.weight"] = variables[f"{side}/position_encodings/encodings"].float()
    said = {*SAID, *OFF}
    left = [name for name in variables if name not in used and name.rsplit("/", 1)[-1] not in said]
    problems += [f"model.bin: {name} has no place in a Transformer of Limelight" for name in sorted(left)]
    return weights


def _full(value: Tensor, scale: Tensor | None) -> Tensor:
    """float32 of any numbers: rows of 8 bits were multiplied by their scale."""
    whole = value.float()
    if scale is None:
        return whole
    return whole / (scale.float()[:, None] if scale.dim() == 1 and whole.dim() == 2 else scale.float())


def _ours(config: ModelConfig, name: str, value: Tensor) -> Tensor:
    joint = next((letters for letters in ("qkv", "kv") if f".{letters}." in name), None)
    if joint is None:
        return value.clone()
    sizes = [config.d_head * (config.num_heads if letter == "q" else config.kv_heads) for letter in joint]
    return join_projections(torch.split(value, sizes), config) if sum(sizes) == len(value) else value.clone()


def _numbers(pieces: Sequence[str], found: ParsedEngineModel) -> Vocabulary:
    place = {piece: number for number, piece in enumerate(pieces)}
    known, unknown = found.specials, place[found.unknown]
    start = known.start if known.start not in (known.pad, known.end) else None
    ids = {"pad": known.pad, "unknown": unknown, "start": start, "end": known.end}
    control = tuple(n for n, piece in enumerate(pieces) if _is_special(piece) and n not in ids.values())
    try:
        return Vocabulary(pieces=tuple(pieces), control=control, **ids)
    except ConfigError as error:
        listed = "; ".join(error.problems)[:300]
        raise ModelFileError(f"the vocabulary cannot be used: {listed}; get it again") from None


def _characters(pieces: Sequence[str]) -> bytes:
    letters, written = [piece for piece in pieces if not _is_special(piece)], io.BytesIO()
    if not "".join(letters).strip():
        raise ModelFileError("the vocabulary has no letters, so that no text can be cut into its pieces; get it again")
    SentencePieceTrainer.train(
        sentence_iterator=iter(["".join(letters)] * 2), model_writer=written, model_type="char", character_coverage=1.0,
        vocab_size=len(letters) + 3, hard_vocab_limit=False, normalization_rule_name="identity", add_dummy_prefix=False,
        remove_extra_whitespaces=False, minloglevel=2, num_threads=1,
    )  # fmt: skip
    return written.getvalue()
