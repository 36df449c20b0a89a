"""Ids become pieces that a person can read: their place in the text, their word and their probability."""

import math
import re
from collections.abc import Sequence
from itertools import accumulate

import torch
from torch import Tensor

from limelight.inspection.trace import SourceToken, TargetToken
from limelight.text.pieces.piece_words import words_of
from limelight.text.pieces.tokenizer import SPACE, Tokenizer

_BYTE = re.compile("<0x([0-9A-F]{2})>")


def source_tokens(ids: Sequence[int], text: str, tokenizer: Tokenizer, silent: frozenset[int]) -> list[SourceToken]:
    """`silent`: ids that are no text (`silent_of`)."""
    pieces, spoken = tokenizer.pieces(ids), [number not in silent for number in ids]
    places, words = spans(pieces, spoken, text), word_numbers(pieces, spoken)
    return [SourceToken(*one) for one in zip(ids, pieces, *zip(*places, strict=True), words, strict=True)]


def target_tokens(logits_TV: Tensor, ids: Sequence[int], topk: int, tokenizer: Tokenizer, silent: frozenset[int]) -> list[TargetToken]:
    """`ids[t]` is what row t of the logits should predict."""
    log_probs_TV = torch.log_softmax(logits_TV, dim=-1, dtype=torch.float32)
    own_T1 = log_probs_TV.gather(1, torch.tensor(ids, device=logits_TV.device)[:, None])
    top = log_probs_TV.topk(min(max(topk, 2), log_probs_TV.shape[1]), dim=1)
    entropy_T = -(log_probs_TV.exp() * log_probs_TV).sum(dim=1) / math.log(2)
    rank_T = (log_probs_TV > own_T1).sum(dim=1)
    pieces = tokenizer.pieces(ids)
    words = word_numbers(pieces, [number not in silent for number in ids])
    numbers = (x.tolist() for x in (own_T1[:, 0], entropy_T, rank_T, top.indices, top.values))
    result = []
    for number, piece, word, logp, entropy, rank, best, values in zip(ids, pieces, words, *numbers, strict=True):
        rival = next(value for other, value in zip(best, values, strict=True) if other != number)
        alternatives = list(zip(best, tokenizer.pieces(best), values, strict=True))[:topk]
        result.append(TargetToken(number, piece, word, logp, entropy, rank, logp - rival, alternatives))
    return result


def silent_of(tokenizer: Tokenizer) -> frozenset[int]:
    """Ids that are no pieces of a text: the end, a language and the like. It asks for every piece, so ask once."""
    return tokenizer.controls() | {tokenizer.pad, tokenizer.start, tokenizer.end}


def word_numbers(pieces: Sequence[str], spoken: Sequence[bool]) -> list[int | None]:
    """The word between spaces in which each piece begins: ["▁the", "▁c", "at", "</s>"] -> [0, 1, 1, None]. A lone space is in none."""
    texts = [piece if is_text else "" for piece, is_text in zip(pieces, spoken, strict=True)]
    return [words[0] if words else None for words in words_of(texts)]


def spans(pieces: Sequence[str], spoken: Sequence[bool], text: str) -> list[tuple[int, int]]:
    """The characters of each piece, without the space before it: ["▁a", "▁b", "c"] in "a bc" -> [(0, 1), (2, 3), (3, 4)].

    Bytes of one character all have its place. A piece that is not in the text as it is spelled, of a model that changes characters, is
    looked for further on; if it is nowhere, its range is empty.
    """
    raw, at, first = text.encode("utf-8", "surrogatepass"), 0, True
    begun = [0, *accumulate(int(byte & 0xC0 != 0x80) for byte in raw)]  # characters before each byte
    result: list[tuple[int, int]] = []
    for piece, is_text in zip(pieces, spoken, strict=True):
        begin = -1
        if is_text:
            match = _BYTE.fullmatch(piece)
            letters = bytes.fromhex(match[1]) if match else piece.replace(SPACE, " ").encode("utf-8", "surrogatepass")
            letters, first = (
                letters.removeprefix(b" ") if first else letters,
                False,
            )  # the first space is not in the text
            if raw.startswith(letters, at):
                begin = at
            elif letters := letters.strip(b" "):
                begin = raw.find(letters, at)
        if begin < 0:
            result.append((begun[at], begun[at]))
            continue
        at = begin + len(letters)
        begin += len(letters) - len(letters.lstrip(b" "))
        result.append((begun[begin + 1] - 1 if begin < at else begun[at], begun[at]))
    return result
