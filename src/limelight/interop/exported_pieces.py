"""The tokenizer of a bundle is written as files that AutoTokenizer loads, with the same ids. See docs/interop.md."""

import json
import re
from collections.abc import Callable
from typing import Any

from limelight.bundle import Bundle
from limelight.errors import ConfigError
from limelight.interop.file_names import JOINT_SPM, SOURCE_SPM, TARGET_SPM, TARGET_VOCAB, TOKENIZER_CONFIG, VOCAB
from limelight.interop.language_codes import M2M100, WMT21
from limelight.text.pieces.tokenizer import Tokenizer

M2M100_LANGUAGE, NLLB_LANGUAGE = re.compile(r"__([a-z]{2,3})__"), re.compile(r"[a-z]{3}_[A-Z][a-z]{3}")


def tokenizer_files(bundle: Bundle) -> dict[str, bytes]:
    """Name and content of each. A ConfigError where theirs cannot give the same ids."""
    pieces = bundle.target_tokenizer.vocabulary
    numbers = bundle.target_tokenizer.numbers
    control = [] if numbers is None else [pieces[i] for i in numbers.control]
    if any(M2M100_LANGUAGE.fullmatch(piece) for piece in control):
        return _m2m100(bundle, pieces)
    if any(NLLB_LANGUAGE.fullmatch(piece) for piece in control):
        return _nllb(bundle, pieces)
    return _marian(bundle)


def _marian(bundle: Bundle) -> dict[str, bytes]:
    source, target = bundle.source_tokenizer, bundle.target_tokenizer
    separate = source.vocabulary != target.vocabulary
    named = {what: target.vocabulary[number] for what, number in _special(target).items()}
    if separate and any(source.vocabulary[i] != target.vocabulary[i] for i in _special(target).values()):
        reason = "the two vocabularies call unknown, padding or end differently, and a MarianTokenizer has one name for each"
        raise ConfigError("", [reason])
    files = {SOURCE_SPM: source.model, TARGET_SPM: target.model, VOCAB: _dump_vocabulary(source)}
    if separate:
        files[TARGET_VOCAB] = _dump_vocabulary(target)
    first, second = bundle.settings.languages
    settings = {
        "tokenizer_class": "MarianTokenizer",
        "source_lang": first,
        "target_lang": second,
        "separate_vocabs": separate,
        "model_max_length": bundle.settings.model.max_length,
        # A text that spells "</s>" is a text: it must not end the sentence.
        "split_special_tokens": True,
        "clean_up_tokenization_spaces": False,
        **named,
    }
    return {**files, TOKENIZER_CONFIG: encode_json(settings)}


def _m2m100(bundle: Bundle, pieces: list[str]) -> dict[str, bytes]:
    places = [number for number, piece in enumerate(pieces) if M2M100_LANGUAGE.fullmatch(piece)]
    codes = tuple(pieces[number].strip("_") for number in places)
    known = {M2M100: "m2m100", WMT21: "wmt21"}
    if codes not in known or places != list(range(places[0], places[0] + len(places))):
        raise ConfigError("", ["its languages are not those that an M2M100Tokenizer has, in its order"])
    vocab = {piece: number for number, piece in enumerate(pieces[: places[0]])}
    settings = {
        "tokenizer_class": "M2M100Tokenizer",
        "language_codes": known[codes],
        **_many(bundle, pieces, lambda piece: piece.strip("_")),
    }
    return {
        JOINT_SPM: bundle.target_tokenizer.model,
        VOCAB: encode_json(vocab),
        TOKENIZER_CONFIG: encode_json(settings),
    }


def _nllb(bundle: Bundle, pieces: list[str]) -> dict[str, bytes]:
    """The ids of languages are written down: theirs are counted differently with and without a tokenizer.json."""
    control = bundle.target_tokenizer.controls() | {bundle.target_tokenizer.unknown}
    added = {str(i): _make_added_token(pieces[i]) for i in sorted(control) if not pieces[i].startswith("<unused:")}
    settings = {
        "tokenizer_class": "NllbTokenizer",
        "additional_special_tokens": [piece for piece in pieces if NLLB_LANGUAGE.fullmatch(piece)],
        "added_tokens_decoder": added,
        **_many(bundle, pieces, lambda piece: piece),
    }
    return {JOINT_SPM: bundle.target_tokenizer.model, TOKENIZER_CONFIG: encode_json(settings)}


def _special(tokenizer: Tokenizer) -> dict[str, int]:
    return {"unk_token": tokenizer.unknown, "pad_token": tokenizer.pad, "eos_token": tokenizer.end}


def _many(bundle: Bundle, pieces: list[str], called: Callable[[str], str]) -> dict[str, Any]:
    """Settings of models with many languages: those of both sides, special pieces, the longest text."""
    usual = bundle.settings.aim()
    sides = (("src_lang", usual.source_begin), ("tgt_lang", usual.target_begin))
    languages = {name: called(pieces[ids[0]]) for name, ids in sides if len(ids) == 1}
    special, start = _special(bundle.target_tokenizer), bundle.target_tokenizer.start
    special |= {"bos_token": start} if start >= 0 else {}
    named = {name: pieces[number] for name, number in special.items()}
    return {**languages, **named, "model_max_length": bundle.settings.model.max_length}


def _dump_vocabulary(tokenizer: Tokenizer) -> bytes:
    return encode_json({piece: number for number, piece in enumerate(tokenizer.vocabulary)})


def _make_added_token(piece: str) -> dict[str, Any]:
    mask = piece == "<mask>"
    named = {"content": piece, "lstrip": mask, "normalized": mask}
    return {**named, "rstrip": False, "single_word": False, "special": True}


def encode_json(value: dict[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False, indent=1, allow_nan=False).encode() + b"\n"
