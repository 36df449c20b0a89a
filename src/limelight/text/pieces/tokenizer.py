"""A `Tokenizer` turns text into ids and back with a SentencePiece model, learnt here or brought along.

A piece never crosses a space, so a column of texts is encoded by its distinct words: each is looked up once and the
ids are gathered with numpy. "the cat sat on the cat" costs five look-ups, and none when the words are remembered.

A unigram model adds up scores in float32. Two segmentations of a word can be so close that the words before it decide
by rounding (15 in 200,000 sentences). Here a word is segmented alone, so that it gets the same ids in training and in
translation, wherever it stands. For BPE the two ways are always equal.
"""

import io
import logging
import math
import random
import re
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final, Literal, Self

from pydantic import Field
from sentencepiece import SentencePieceProcessor, SentencePieceTrainer

from limelight.config import SparseSettings
from limelight.errors import DataError
from limelight.files import write_whole
from limelight.text.languages import count_words
from limelight.text.pieces.few_words import FewWords, cut_words
from limelight.text.pieces.model_file import read_facts
from limelight.text.pieces.vocabulary import Numbering, Vocabulary

if TYPE_CHECKING:
    import pyarrow as pa

    from limelight.text.pieces.word_memory import WordMemory

PAD, UNKNOWN, START, END = 0, 1, 2, 3
TERM_TAG: Final = 1  # the tag before each term that is told with a source
MATCH_TAG: Final = 2  # the tag before the translation of a similar text
SPACE = "\u2581"  # SentencePiece writes a space as this block; a block in a text comes back as a space
SLICE = 1 << 16  # texts split at once: temporaries stay below about 30 MB for sentences

_PLACEHOLDER = re.compile("\u27e6([0-9]{1,3})\u27e7")

logger = logging.getLogger(__name__)


class PieceSettings(SparseSettings):
    """The settings say how the pieces are learnt."""

    rare: ClassVar = {"named"}
    # BPE and unigram need as many pieces per word (1.544 and 1.536), but BPE learns them in 5 s instead of 80 s.
    algorithm: Literal["unigram", "bpe"] = "bpe"
    size: int | None = Field(default=None, ge=64, le=256_000)  # None: `suggest_size` decides
    byte_fallback: bool = True  # spell an unknown character in UTF-8 bytes instead of losing it
    joint: bool = True  # one model for both sides, or one each
    placeholders: int = Field(default=16, ge=0, le=256)
    tags: int = Field(default=16, ge=0, le=1024)
    named: tuple[str, ...] = ()  # more control symbols, after the numbered tags: see `limelight.text.pieces.tags`
    # At 16,000 pieces a sample of 200,000 pairs needs 0.5 % (unigram) or 0.1 % (BPE) more pieces per word than 500,000.
    sample: int = Field(default=200_000, ge=1)  # sentence pairs that the learner sees at most
    seed: int = 0  # draws the sample
    character_coverage: float = Field(default=0.9995, gt=0, le=1)  # rarer characters get no piece of their own


def learn(texts: Iterable[str], settings: PieceSettings) -> bytes:
    """A SentencePiece model. The same texts and settings give the same bytes.

    Joint models are given the texts of both sides. The size is made to fit: too few texts lower it, too many
    different characters raise it, and the log says so.
    """
    sample, words = _sample(texts, settings.sample * (2 if settings.joint else 1), settings.seed)
    if not sample:
        raise DataError("there is no text to learn pieces from; check that the corpus has lines that are not empty")
    size = settings.size or suggest_size(words)
    try:
        model = _train(sample, size, settings)
    except RuntimeError as error:
        needed = re.search(r"smaller than required_chars\. \d+ vs (\d+)", str(error))
        if needed is None:
            raise DataError(f"SentencePiece could not learn from these texts: {error}") from None
        model = _train(sample, int(needed[1]), settings)
    learnt = Tokenizer(model).size
    if learnt != size:
        logger.warning("asked for %d pieces, but these texts allow %d; the model has %d", size, learnt, learnt)
    return model


def suggest_size(words: int) -> int:
    """How many pieces suit a corpus of `words` running words, both sides together.

    Gowda and May (2020): as many as leave most pieces 100 examples. With BPE on German and English these do, at 5 sqrt(words)
    rounded to 1,000 times a power of two: 81 % of 8,000 (3 M words), 86 % of 16,000 (12 M), 92 % of 16,000 (20 M).
    Below 1 M words only a third do, but half the size would make sentences a sixth longer.
    """
    doublings = round(math.log2(max(1.0, 5 * math.sqrt(max(words, 0)) / 1000)))
    return int(1000 * 2 ** min(doublings, 5))


class Tokenizer:
    """A tokenizer is a SentencePiece model, numbered by itself or by a vocabulary. Ids carry no start or end; the batch adds those."""

    def __init__(self, model: bytes, numbers: Vocabulary | None = None) -> None:
        self.model, self.numbers = model, numbers
        self.processor = SentencePieceProcessor()
        try:
            self.processor.LoadFromSerializedProto(model)
            self.facts = read_facts(model)
            self.learnt: list[str] = [self.processor.id_to_piece(i) for i in range(self.processor.get_piece_size())]
        except (RuntimeError, IndexError, UnicodeDecodeError) as error:
            raise DataError(f"this is not a SentencePiece model, or it is damaged ({error}); learn it again") from None
        self.vocabulary: list[str] = self.learnt if numbers is None else list(numbers.pieces)
        self.size = len(self.vocabulary)
        self._numbering = None if numbers is None else Numbering(self.processor, numbers)
        p, n = self.processor, numbers
        self.pad: int = p.pad_id() if n is None else n.pad
        self.unknown: int = p.unk_id() if n is None else n.unknown
        self.start: int = p.bos_id() if n is None else -1 if n.start is None else n.start
        self.end: int = p.eos_id() if n is None else n.end
        # Imported models may change characters or have pieces such as "▁of▁the": those need the whole text.
        self.by_words = self._spaces_start_pieces()
        self._few_words = FewWords(self.segment_words)

    @classmethod
    def load(cls, path: Path) -> Self:
        try:
            return cls(path.read_bytes())
        except FileNotFoundError:
            raise DataError(f"{path} does not exist; check the name, or learn a model first") from None
        except DataError as error:
            raise DataError(f"{path}: {error}") from None

    def save(self, path: Path) -> None:
        write_whole(path, self.model)

    def encode_texts(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of a few texts: ["ab ab", ""] -> [[7, 9, 7, 9], []]."""
        split = [cut_words(text, self.by_words) for text in texts]
        ids = self._few_words.ids_of(list(dict.fromkeys(chain.from_iterable(split))))
        return [list(chain.from_iterable(ids[word] for word in some)) for some in split]

    def encode(self, texts: "pa.StringArray | Sequence[str]") -> "pa.ListArray":
        """The same in columns, one list of int32 ids for each text."""
        import pyarrow as pa

        from limelight.text.pieces.words import as_column

        column = as_column(texts)
        slices = [self._encode_slice(column.slice(at, SLICE)) for at in range(0, len(column), SLICE)]
        return pa.concat_arrays(slices) if slices else pa.array([], pa.list_(pa.int32()))

    def decode(self, ids: Sequence[Sequence[int]]) -> list[str]:
        """The texts again. Control pieces (pad, start, end, tags) leave no trace."""
        rows = [list(map(int, row)) for row in ids]
        for number, row in enumerate(rows):
            wrong = [i for i in row if not 0 <= i < self.size]
            if wrong:
                raise DataError(f"row {number} has id {wrong[0]}, but this model has ids 0 to {self.size - 1}")
        if self._numbering is not None:
            return [self._numbering.text(row) for row in rows]
        # One by one, for given several rows SentencePiece guesses from the first what they are, and that may be empty.
        return [self.processor.decode(row) if row else "" for row in rows]

    def pieces(self, ids: Sequence[int]) -> list[str]:
        return [self.vocabulary[i] for i in ids]

    def controls(self) -> frozenset[int]:
        if self.numbers is not None:
            return self.numbers.controls
        return frozenset(i for i in range(self.size) if self.processor.is_control(i))

    def renumber(self, words: Sequence[str], found: list[list[int]]) -> list[list[int]]:
        """What SentencePiece found for each word, in the ids of this tokenizer."""
        return found if self._numbering is None else self._numbering.renumber(words, found)

    def tag(self, number: int) -> int:
        """The id of a tag, to be put among the ids; no text ever encodes to it."""
        return self.id_of_control(tag(number))

    def id_of_control(self, piece: str) -> int:
        if piece not in self.vocabulary:
            raise DataError(f"this model has no piece {piece}; learn it again with more tags or placeholders")
        return self.vocabulary.index(piece)

    def placeholders(self) -> dict[int, int]:
        """The ids that placeholders encode to wherever they stand in a text, by their numbers; none where the pieces are of others."""
        found = ((_PLACEHOLDER.fullmatch(piece), number) for number, piece in enumerate(self.vocabulary))
        return {int(match[1]): number for match, number in found if match is not None}

    def segment_words(self, words: Sequence[str]) -> list[list[int]]:
        """The best segmentation of each word of `split_texts`, alone. An empty word is a lone space."""
        bare = self.bare_words(words)
        found: list[list[int]] = self.processor.encode(bare, num_threads=1)
        if self.by_words:
            space = [self.processor.piece_to_id(SPACE)]
            found = [ids if word else space for word, ids in zip(bare, found, strict=True)]
        return self.renumber(bare, found)

    def bare_words(self, words: Sequence[str]) -> list[str]:
        """Words without the space before them, which the model puts back itself."""
        return [word.removeprefix(" ") for word in words] if self.by_words else list(words)

    def _spaces_start_pieces(self) -> bool:
        if self.facts.algorithm not in ("unigram", "bpe") or not self.facts.keeps_characters:
            return False
        if self.numbers is not None and self.facts.algorithm == "unigram":
            return False  # so that even a tie is decided as where the model was published
        inside = any(SPACE in piece[1:] for piece in self.learnt)
        spaced = self.processor.normalize("a  b ") == f"{SPACE}a{SPACE}{SPACE}b{SPACE}"
        # Unknown neighbours are merged into one; a known space keeps those of two words apart.
        known = self.processor.piece_to_id(SPACE) != self.processor.unk_id()
        return spaced and known and not inside

    @cached_property
    def _memory(self) -> "WordMemory":
        from limelight.text.pieces.word_memory import WordMemory

        return WordMemory(self.segment_words)

    def _encode_slice(self, texts: "pa.StringArray") -> "pa.ListArray":
        from limelight.text.pieces.words import as_lists, split_texts

        split = split_texts(texts, at_spaces=self.by_words)
        ids, ends = self._memory.lay_out(split.words, split.rows)
        return as_lists(ids, ends[split.starts])


def placeholder(number: int) -> str:
    """A piece that stands for something not to be translated. It is never cut: placeholder(3) -> ⟦3⟧."""
    return f"⟦{number}⟧"


def tag(number: int) -> str:
    """A piece for a language or a domain: tag(3) -> <tag:3>. Text with these letters encodes to other pieces."""
    return f"<tag:{number}>"


def _sample(texts: Iterable[str], most: int, seed: int) -> tuple[list[str], int]:
    """Draw at most `most` of the texts, each with the same chance (reservoir sampling), and the running words of all."""
    generator = random.Random(seed)
    kept: list[str] = []
    words = seen = 0
    for text in texts:
        if not text or text.isspace():
            continue
        seen += 1
        words += count_words(text)
        if len(kept) < most:
            kept.append(text)
        elif (at := int(generator.random() * seen)) < most:
            kept[at] = text
    return kept, words


def _train(texts: list[str], size: int, settings: PieceSettings) -> bytes:
    written = io.BytesIO()
    SentencePieceTrainer.train(
        # A tab marks boundaries inside SentencePiece, which skips any text that has one.
        sentence_iterator=(text.replace("\t", " ") for text in texts),
        model_writer=written,
        model_type=settings.algorithm,
        vocab_size=size,
        hard_vocab_limit=False,
        character_coverage=settings.character_coverage,
        byte_fallback=settings.byte_fallback,
        # Texts are normalized before they come here, once for every use; a model that changed them would lose spaces.
        normalization_rule_name="identity",
        add_dummy_prefix=True,
        remove_extra_whitespaces=False,
        pad_id=PAD,
        unk_id=UNKNOWN,
        bos_id=START,
        eos_id=END,
        control_symbols=[*(tag(i) for i in range(settings.tags)), *settings.named],
        user_defined_symbols=[placeholder(i) for i in range(settings.placeholders)],
        # With two threads unigram adds up in another order and ends with other pieces.
        num_threads=1,
        minloglevel=2,
    )
    return written.getvalue()
