"""Folders as others publish them: tiny random models made by transformers, with SentencePiece models trained on a few real words."""

import io
import json
import random
from pathlib import Path
from typing import Any

import torch
from sentencepiece import SentencePieceProcessor, SentencePieceTrainer

from limelight.interop.language_codes import M2M100, NLLB

WORDS = {
    "en": "the cat sits on a mat and looks at two small dogs in our old garden while rain falls over every street",
    "de": "die Katze sitzt auf einer Matte und sieht zwei kleine Hunde in unserem alten Garten während Regen fällt",
}


class OnlyFirst:
    """A language may be what a translation begins with, and nothing after it, as with us."""

    def __init__(self, ids: tuple[int, ...]) -> None:
        self.ids = list(ids)

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        if input_ids.shape[1] > 1:
            scores[:, self.ids] = -torch.inf
        return scores


def sentences(language: str, count: int, seed: int = 0) -> list[str]:
    generator = random.Random(seed)
    return [" ".join(generator.choices(WORDS[language].split(), k=generator.randint(3, 9))) + "." for _ in range(count)]


def spm(texts: list[str], size: int = 90, algorithm: str = "unigram", **more: Any) -> bytes:
    """As OPUS-MT and fairseq train them: with SentencePiece's own normalization, and its own ids."""
    written = io.BytesIO()
    SentencePieceTrainer.train(
        sentence_iterator=iter(texts),
        model_writer=written,
        model_type=algorithm,
        vocab_size=size,
        hard_vocab_limit=False,
        minloglevel=2,
        num_threads=1,
        **more,
    )
    return written.getvalue()


def learnt(model: bytes) -> list[str]:
    processor = SentencePieceProcessor(model_proto=model)
    return [processor.id_to_piece(i) for i in range(processor.get_piece_size())]


def _numbers(models: list[bytes], tags: tuple[str, ...] = ()) -> dict[str, int]:
    """As Marian's: the end is 0, the unknown 1, the padding last; the rest in no order of SentencePiece's."""
    pieces = sorted({piece for model in models for piece in learnt(model)[3:]}, reverse=True)
    return {piece: number for number, piece in enumerate(["</s>", "<unk>", *tags, *pieces, "<pad>"])}


def marian(
    folder: Path,
    *,
    separate: bool = False,
    tags: tuple[str, ...] = (),
    seed: int = 0,
    dtype: torch.dtype = torch.float32,
    **changes: Any,
) -> Any:
    models = [spm(sentences("en", 200)), spm(sentences("de", 200))]
    lists = [_numbers(models[:1]), _numbers(models[1:])] if separate else [_numbers(models, tags)]
    if separate:  # one id for the padding of both sides, as the model wants it
        padding = max(map(len, lists)) - 1
        for numbers in lists:
            numbers["<pad>"] = padding
    folder.mkdir(parents=True, exist_ok=True)
    for name, model in zip(("source.spm", "target.spm"), models, strict=True):
        (folder / name).write_bytes(model)
    for name, numbers in zip(("vocab.json", "target_vocab.json"), lists, strict=False):
        write_json(folder / name, numbers)
    write_json(
        folder / "tokenizer_config.json",
        {"tokenizer_class": "MarianTokenizer", "source_lang": "en", "target_lang": "de", "separate_vocabs": separate},
    )
    size, padding = max(lists[0].values()) + 1, lists[0]["<pad>"]
    config = {
        "vocab_size": size,
        "pad_token_id": padding,
        "decoder_start_token_id": padding,
        "eos_token_id": 0,
        "forced_eos_token_id": None,
        "share_encoder_decoder_embeddings": not separate,
        "decoder_vocab_size": max(lists[-1].values()) + 1,
        "activation_function": "swish",
        "scale_embedding": True,
        **_shape(),
        **changes,
    }
    return _made("MarianMTModel", "MarianConfig", config, folder, seed, dtype)


def m2m100(folder: Path, *, seed: int = 0, dtype: torch.dtype = torch.float32, **changes: Any) -> Any:
    model = spm(sentences("en", 200) + sentences("de", 200), algorithm="bpe", size=120)
    numbers = {piece: number for number, piece in enumerate(["<s>", "<pad>", "</s>", "<unk>", *learnt(model)[3:]])}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "sentencepiece.bpe.model").write_bytes(model)
    write_json(folder / "vocab.json", numbers)
    write_json(folder / "tokenizer_config.json", {"tokenizer_class": "M2M100Tokenizer"})
    config = {
        "vocab_size": len(numbers) + len(M2M100) + 8,
        "encoder_layerdrop": 0.0,
        "decoder_layerdrop": 0.0,
        **_shape(),
        **changes,
    }
    return _made("M2M100ForConditionalGeneration", "M2M100Config", config, folder, seed, dtype)


def nllb(folder: Path, *, seed: int = 0, **changes: Any) -> Any:
    model = spm(sentences("en", 200) + sentences("de", 200), algorithm="bpe", size=120)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "sentencepiece.bpe.model").write_bytes(model)
    first = len(learnt(model)) + 1
    added = {str(i): _added(piece) for i, piece in enumerate(("<s>", "<pad>", "</s>", "<unk>"))}
    added |= {str(first + i): _added(piece) for i, piece in enumerate((*NLLB, "<mask>"))}
    write_json(
        folder / "tokenizer_config.json",
        {"tokenizer_class": "NllbTokenizer", "additional_special_tokens": list(NLLB), "added_tokens_decoder": added},
    )
    config = {
        "vocab_size": first + len(NLLB) + 3,
        "encoder_layerdrop": 0.0,
        "decoder_layerdrop": 0.0,
        **_shape(),
        **changes,
    }
    return _made("M2M100ForConditionalGeneration", "M2M100Config", config, folder, seed, torch.float32)


def pegasus(folder: Path, *, seed: int = 0, **changes: Any) -> Any:
    """With Marian's pieces: those of Pegasus itself are for summaries."""
    model = spm(sentences("en", 200) + sentences("de", 200), size=120)
    numbers = {piece: number for number, piece in enumerate(["<pad>", "</s>", "<unk>", *learnt(model)[3:]])}
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("source.spm", "target.spm"):
        (folder / name).write_bytes(model)
    write_json(folder / "vocab.json", numbers)
    write_json(folder / "tokenizer_config.json", {"tokenizer_class": "MarianTokenizer"})
    config = {"vocab_size": len(numbers), "forced_eos_token_id": None, **_shape(), **changes}
    return _made("PegasusForConditionalGeneration", "PegasusConfig", config, folder, seed, torch.float32)


def _shape() -> dict[str, Any]:
    """All different, so that a swapped axis shows."""
    sides = {"layers": (3, 2), "attention_heads": (4, 4), "ffn_dim": (40, 40)}
    both = {f"{side}_{what}": values[at] for what, values in sides.items() for at, side in enumerate(("encoder", "decoder"))}
    return {"d_model": 24, "max_position_embeddings": 64, "init_std": 0.3, **both}


def _made(kind: str, config_kind: str, config: dict[str, Any], folder: Path, seed: int, dtype: torch.dtype) -> Any:
    import transformers  # takes seconds, and most who import this file want none of its models

    generator = torch.Generator().manual_seed(seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = getattr(transformers, kind)(getattr(transformers, config_kind)(**config)).eval()
    with torch.no_grad():
        for name, weight in (*model.named_parameters(), *model.named_buffers()):
            if "embed_positions" not in name:  # biases and norms too, which start as 0 and 1
                weight.add_(torch.randn(weight.shape, generator=generator) * 0.1)
    model = model.to(dtype)
    model.save_pretrained(folder)
    return model


def _added(piece: str) -> dict[str, Any]:
    mask = piece == "<mask>"
    return {
        "content": piece,
        "lstrip": mask,
        "normalized": mask,
        "rstrip": False,
        "single_word": False,
        "special": True,
    }


def write_json(path: Path, value: Any) -> None:
    path.write_bytes(json.dumps(value, ensure_ascii=False).encode())


def change_json(path: Path, **changes: Any) -> None:
    write_json(path, {**json.loads(path.read_bytes()), **changes})
