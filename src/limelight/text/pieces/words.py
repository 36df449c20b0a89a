"""`split_texts` turns a column of texts into distinct words, without a Python loop over the texts.

What is known about each distinct word is then laid out for every running word (`word_memory.lay_out`).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from limelight.errors import DataError
from limelight.text.pieces.few_words import refuse_half_character
from limelight.text.pieces.word_memory import Integers


@dataclass(frozen=True)
class SplitTexts:
    """The texts are kept as words. Running word w of text i is `words[rows[w]]`, for w from starts[i] to starts[i + 1].

    A word that is not the first of its text still has the space before it.
    """

    words: list[str]
    rows: Integers
    starts: Integers


def as_column(texts: pa.StringArray | Sequence[str]) -> pa.StringArray:
    """Texts as one Arrow array without gaps."""
    if isinstance(texts, pa.ChunkedArray):
        texts = texts.combine_chunks()
    try:
        column = texts.cast(pa.string()) if isinstance(texts, pa.Array) else pa.array(texts, pa.string())
    except UnicodeEncodeError as error:
        raise refuse_half_character(error) from None
    if column.null_count:
        where = column.is_null().to_pylist().index(True)
        raise DataError(f"text {where} is missing (null); drop the row or put an empty text there")
    return column


def split_texts(texts: pa.StringArray, *, at_spaces: bool) -> SplitTexts:
    """Cut before each space, copying nothing: "a  b" -> "a", " ", " b". An empty text has no words.

    Words keep their space so that they lie end to end in memory, as Arrow wants it. Without at_spaces a text is one word.
    """
    offsets = np.frombuffer(texts.buffers()[1], np.int32, len(texts) + 1, 4 * texts.offset)
    if not at_spaces or offsets[0] == offsets[-1]:
        bounds = offsets
    else:
        first = offsets[0]
        letters = np.frombuffer(texts.buffers()[2], np.uint8, offsets[-1] - first, first)
        begins = offsets[:-1][offsets[:-1] < offsets[1:]]
        cut = letters == ord(" ")
        empty_first = begins[cut[begins - first]]  # a text that begins with a space has an empty word before it
        cut[begins - first] = True
        bounds = np.append(np.flatnonzero(cut) + first, offsets[-1]).astype(np.int32)
        if len(empty_first):
            bounds = np.sort(np.concatenate([bounds, empty_first]))
    words = pa.StringArray.from_buffers(len(bounds) - 1, pa.py_buffer(bounds), texts.buffers()[2])
    distinct = words.dictionary_encode()
    starts = np.searchsorted(bounds[:-1], offsets) if at_spaces else np.arange(len(texts) + 1)
    return SplitTexts(distinct.dictionary.to_pylist(), distinct.indices.to_numpy(), starts)


def as_lists(ids: Integers, ends: Integers) -> pa.ListArray:
    """List i has ids[ends[i] : ends[i + 1]]."""
    return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), pa.array(ids, pa.int32()))
