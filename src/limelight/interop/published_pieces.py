"""The pieces of a Hugging Face folder are its SentencePiece models, with the ids that its vocabulary gives them.

    MarianTokenizer    source.spm, target.spm, vocab.json (and target_vocab.json); a language is a piece such as >>deu<<
    M2M100Tokenizer    sentencepiece.bpe.model, vocab.json; languages such as __de__ have the ids after those of vocab.json
    NllbTokenizer      sentencepiece.bpe.model; ids are one more than SentencePiece's, then languages such as deu_Latn

Ids without a piece, such as rows that round an embedding up, get a name that no text has.
"""

import re
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from limelight.bundle.strict_json import parse
from limelight.errors import ConfigError, DataError
from limelight.interop.file_names import JOINT_SPM, SOURCE_SPM, TARGET_SPM, TARGET_VOCAB, TOKENIZER, TOKENIZER_CONFIG, VOCAB
from limelight.interop.language_codes import M2M100, NLLB, WMT21
from limelight.interop.quarantine import pieces_problem
from limelight.model.config import ModelConfig
from limelight.text.pieces.tokenizer import Tokenizer
from limelight.text.pieces.vocabulary import LARGEST, Vocabulary

FAIRSEQ = ("<s>", "<pad>", "</s>", "<unk>")  # the first ids of NLLB
MOST_UNUSED = 10_000  # rows of an embedding that no piece has: usually a few, to round it up
UNUSED = re.compile(r"<unused:\d+>")
MARIAN_LANGUAGE = re.compile(r">>(.+)<<")


@dataclass(frozen=True)
class PublishedPieces:
    """Published pieces are what both sides read and write. The models are equal when one serves both, and so are the vocabularies."""

    tokenizer_class: str
    models: tuple[bytes, bytes]
    vocabularies: tuple[Vocabulary, Vocabulary]
    languages: Mapping[str, int]  # by the code a person writes, such as deu: the id of the piece
    said: tuple[str | None, str | None] = (None, None)  # source and target, where the files say them


def read_pieces(folder: Path, model_type: str, model: ModelConfig) -> PublishedPieces:
    """Or a ConfigError with every problem. `model` says how many ids there are, and which are padding and end."""
    settings = read_published(folder, TOKENIZER_CONFIG) if (folder / TOKENIZER_CONFIG).is_file() else {}
    named = str(settings.get("tokenizer_class") or _guess_tokenizer(folder, model_type)).removesuffix("Fast")
    readers: dict[str, Callable[[Path, Mapping[str, Any], ModelConfig], PublishedPieces]] = {
        "MarianTokenizer": _marian,
        "M2M100Tokenizer": _m2m100,
        "NllbTokenizer": _nllb,
    }
    if named not in readers:
        raise unusable(f"{TOKENIZER_CONFIG}: has tokenizer_class={named[:99]!r}; known are {', '.join(readers)}")
    return readers[named](folder, settings, model)


def absent_pieces(folder: Path, model_type: str) -> list[str]:
    """Files that are missing whatever the model is: all that can be said when its config cannot be read."""
    needed = (SOURCE_SPM, TARGET_SPM, VOCAB) if model_type != "m2m_100" else (JOINT_SPM,)
    return [f"{name}: is missing" for name in needed if not (folder / name).is_file()]


def _guess_tokenizer(folder: Path, model_type: str) -> str:
    if model_type != "m2m_100":
        return "MarianTokenizer"
    return "M2M100Tokenizer" if (folder / VOCAB).is_file() else "NllbTokenizer"


def _marian(folder: Path, settings: Mapping[str, Any], model: ModelConfig) -> PublishedPieces:
    separate = settings.get("separate_vocabs") is True
    lists = (VOCAB, TARGET_VOCAB) if separate else (VOCAB, VOCAB)
    _need(folder, SOURCE_SPM, TARGET_SPM, *lists)
    sizes = (model.source_vocab, model.vocab_size)
    if not separate and sizes[0] != sizes[1]:
        raise unusable(f"{TARGET_VOCAB}: is not in use, but config.json has a vocabulary of {sizes[0]:,} and one of {sizes[1]:,}")
    made = {
        name: _vocabulary(name, _numbers(folder, name), size, settings, model)
        for name, size in dict(zip(lists, sizes, strict=True)).items()
    }
    tags = [] if separate else [MARIAN_LANGUAGE.fullmatch(piece) for piece in made[VOCAB].pieces]
    languages = {tag[1]: number for number, tag in enumerate(tags) if tag}
    models = (_spm(folder, SOURCE_SPM), _spm(folder, TARGET_SPM))
    source, target = (_code(settings.get(name)) for name in ("source_lang", "target_lang"))
    return PublishedPieces("MarianTokenizer", models, (made[lists[0]], made[lists[1]]), languages, (source, target))


def _code(said: object) -> str | None:
    return said if isinstance(said, str) and re.fullmatch(r"[A-Za-z]{2,8}([-_][A-Za-z0-9]{1,8})*", said) else None


def _m2m100(folder: Path, settings: Mapping[str, Any], model: ModelConfig) -> PublishedPieces:
    _need(folder, JOINT_SPM, VOCAB)
    numbers = _numbers(folder, VOCAB)
    codes = WMT21 if settings.get("language_codes") == "wmt21" else M2M100
    languages = {code: len(numbers) + place for place, code in enumerate(codes)}
    numbers |= {f"__{code}__": number for code, number in languages.items()}
    vocabulary = _vocabulary(VOCAB, numbers, model.vocab_size, settings, model, set(languages.values()))
    joint = _spm(folder, JOINT_SPM)
    return PublishedPieces("M2M100Tokenizer", (joint, joint), (vocabulary, vocabulary), languages)


def _nllb(folder: Path, settings: Mapping[str, Any], model: ModelConfig) -> PublishedPieces:
    if not (folder / JOINT_SPM).is_file():
        raise unusable(
            f"{JOINT_SPM}: is missing. {TOKENIZER} alone does not say how SentencePiece cuts a text; take the file from the model that "
            "this one was made from"
        )
    joint = _spm(folder, JOINT_SPM)
    learnt = Tokenizer(joint).learnt
    numbers = {piece: number for number, piece in enumerate((*FAIRSEQ, *learnt[3:]))}
    usual = {code: number for number, code in enumerate((*NLLB, "<mask>"), len(numbers))}
    numbers |= _read_added(folder, settings) or usual
    languages = {piece: number for piece, number in numbers.items() if re.fullmatch(r"[a-z]{3}_[A-Z][a-z]{3}", piece)}
    control = {*languages.values(), *(numbers[piece] for piece in ("<mask>",) if piece in numbers)}
    vocabulary = _vocabulary(JOINT_SPM, numbers, model.vocab_size, settings, model, control)
    return PublishedPieces("NllbTokenizer", (joint, joint), (vocabulary, vocabulary), languages)


def _read_added(folder: Path, settings: Mapping[str, Any]) -> dict[str, int]:
    """The ids that files fix for pieces which SentencePiece has not. An older habit and a newer one count them differently."""
    if (folder / TOKENIZER).is_file():
        listed = read_published(folder, TOKENIZER).get("added_tokens")
        found = [(one.get("id"), one) for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    else:
        decoder = settings.get("added_tokens_decoder")
        found = list(decoder.items()) if isinstance(decoder, dict) else []
    try:
        return {str(one["content"]): int(str(i)) for i, one in found if one.get("content") is not None}
    except ValueError:
        raise unusable(f"{TOKENIZER_CONFIG}: has added tokens whose ids are no numbers") from None


def _vocabulary(
    name: str,
    numbers: Mapping[str, int],
    size: int,
    settings: Mapping[str, Any],
    model: ModelConfig,
    control: Set[int] = frozenset(),
) -> Vocabulary:
    problems = []
    if numbers and max(numbers.values()) >= size:
        problems.append(f"has ids up to {max(numbers.values()):,}, but the embedding of config.json has {size:,} rows")
    if size - len(numbers) > MOST_UNUSED:
        problems.append(f"has {len(numbers):,} pieces, but the embedding of config.json has {size:,} rows")
    if len(set(numbers.values())) < len(numbers):
        problems.append("gives one id to two pieces")
    special = {what: _special(settings, f"{what}_token", usual) for what, usual in (("unk", "<unk>"), ("pad", "<pad>"), ("eos", "</s>"))}
    problems += [f"has no piece {piece[:99]!r}" for piece in special.values() if piece not in numbers]
    for what, wanted in (("pad", model.pad_token), ("eos", model.end_token)):
        if numbers.get(special[what], wanted) != wanted:
            problems.append(f"has id {numbers[special[what]]} for {special[what]!r}, but config.json has {what}_token_id={wanted}")
    if problems:
        raise unusable(*(f"{name}: {problem}" for problem in problems))
    pieces = [f"<unused:{number}>" for number in range(size)]
    for piece, number in numbers.items():
        pieces[number] = piece or pieces[number]  # SentencePiece never finds the empty piece
    start = numbers.get(_special(settings, "bos_token", "<s>"))
    reserved = {numbers[piece] for piece in special.values()} | ({start} if start is not None else set())
    unspoken = {i for i, piece in enumerate(pieces) if UNUSED.fullmatch(piece) or MARIAN_LANGUAGE.fullmatch(piece)}
    return Vocabulary(
        pieces=tuple(pieces),
        pad=numbers[special["pad"]],
        unknown=numbers[special["unk"]],
        end=numbers[special["eos"]],
        start=start,
        control=tuple(sorted((unspoken | control) - reserved)),
    )


def _special(settings: Mapping[str, Any], name: str, usual: str) -> str:
    """A special piece is a text, or an object that has it as content."""
    found = settings.get(name, usual)
    found = found.get("content") if isinstance(found, dict) else found
    return found if isinstance(found, str) else usual


def _numbers(folder: Path, name: str) -> dict[str, int]:
    found = read_published(folder, name)
    if not found or not all(type(number) is int and number >= 0 for number in found.values()):
        raise unusable(f"{name}: is no list of ids by piece")
    return found


def read_published(folder: Path, name: str, largest: int = LARGEST) -> dict[str, Any]:
    """A JSON file of somebody else, within a bound."""
    try:
        with (folder / name).open("rb") as file:
            return parse(file.read(largest + 1), largest)
    except (OSError, ValueError) as error:
        raise unusable(f"{name}: is damaged, {str(error)[:300]}") from None


def _spm(folder: Path, name: str) -> bytes:
    try:
        with (folder / name).open("rb") as file:
            content = file.read(LARGEST)
        if problem := pieces_problem(content):
            raise unusable(f"{name}: {problem}")
        Tokenizer(content)
        return content
    except (OSError, DataError, ValueError, LookupError) as error:
        raise unusable(f"{name}: {str(error)[:300]}") from None


def _need(folder: Path, *names: str) -> None:
    if missing := [f"{name}: is missing" for name in dict.fromkeys(names) if not (folder / name).is_file()]:
        raise unusable(*missing)


def unusable(*problems: str) -> ConfigError:
    return ConfigError("", problems)
