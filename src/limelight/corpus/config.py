"""`PrepareSettings` holds everything that decides what `prepare` makes of a corpus. Equal settings and equal inputs give equal bytes."""

from collections import Counter
from functools import cached_property
from typing import ClassVar, Literal, Self

from pydantic import Field, NonNegativeInt, model_validator

from limelight.config import Settings, SparseSettings
from limelight.text.languages import Direction
from limelight.text.normalize import DEFAULT_STEPS, Step
from limelight.text.pieces.tags import TagSet, explain_bad_name
from limelight.text.pieces.tokenizer import END, PAD, START, PieceSettings

Mode = Literal["off", "warn", "drop"]


class CorpusSettings(SparseSettings):
    """A corpus is files, folders, globs or addresses. Two line-parallel files are named source first."""

    rare: ClassVar = {"swapped", "languages", "tags", "partial"}
    name: str = Field(min_length=1)
    paths: list[str] = Field(min_length=1)
    weight: float = Field(default=1.0, gt=0, le=1000, description="how many times it is seen in an epoch")
    columns: tuple[str, str] | None = Field(default=None, description="fields of JSONL and Parquet, or column numbers of TSV")
    swapped: bool = Field(default=False, description="its sides are exchanged: what stands as source is the target")
    languages: Direction | None = Field(default=None, description="its source and target, where they are not those of the first pair")
    tags: tuple[str, ...] = Field(default=(), description="what its sources are told beside the language: formal, ui ...")
    partial: bool = Field(default=False, description="lines that are empty on one side are no pairs, and are not counted")

    @model_validator(mode="after")
    def _tags_are_names(self) -> Self:
        return self.refuse([why for why in map(explain_bad_name, self.tags) if why])


class FilterSettings(Settings):
    """Each filter is off, warns or drops. The figures beside it are its bounds."""

    malformed: Mode = "drop"
    fuzzy: Mode = "drop"
    empty: Mode = "drop"
    too_long: Mode = "drop"
    broken_text: Mode = "drop"
    length_ratio: Mode = "drop"
    copied: Mode = "drop"
    wrong_script: Mode = "drop"
    wrong_language: Mode = "drop"
    numbers: Mode = "warn"
    placeholders: Mode = "drop"
    markup: Mode = "drop"
    repetition: Mode = "drop"

    longest: int = Field(default=1500, ge=1, description="characters on either side")
    largest_ratio: float = Field(
        default=3.0, gt=1, description="of the lengths in characters, each plus 15, after correction for dense scripts"
    )
    copied_words: int = Field(default=4, ge=1, description="shorter copies are names, units and commands, and stay")
    foreign_letters: float = Field(default=0.3, gt=0, le=1, description="share of letters in no script of the language")
    identified_letters: int = Field(default=20, ge=1, description="shorter text is too short to tell its language")
    least_likely: float = Field(default=0.02, gt=0, lt=1, description="probability below which the language is not the expected one")
    surely_other: float = Field(default=0.8, gt=0, lt=1, description="and above which it is surely another")
    repetition_share: float = Field(default=0.5, gt=0, le=1, description="of the words covered by repeats of one three-word phrase")


class DedupSettings(Settings):
    """Duplicates are dropped over all corpora together; the first in the order of the corpora stays."""

    exact: bool = True
    near: bool = Field(default=False, description="pairs that differ only in case, accents, digits, punctuation and spaces")
    targets_per_source: int | None = Field(default=4, ge=1, description="the most frequent translations of one source stay")


class HeldOutSet(Settings):
    """A held-out set is given for one pair of languages."""

    split: Literal["valid", "test"]
    languages: Direction
    paths: tuple[str, ...] = Field(min_length=1)


class HeldOutSettings(SparseSettings):
    """Validation and test sets are given, or split off by groups of equal source."""

    rare: ClassVar = {"pairs"}
    valid: tuple[str, ...] = ()
    test: tuple[str, ...] = ()
    pairs: tuple[HeldOutSet, ...] = Field(default=(), description="sets for pairs of languages other than the first")
    valid_pairs: int = Field(default=1000, ge=0, description="of each pair of languages, in the mean")
    test_pairs: int = Field(default=1000, ge=0)
    largest_share: float = Field(default=0.05, ge=0, lt=0.5, description="of the corpus, each")
    leaks: Mode = "drop"
    near: float = Field(default=0.75, gt=0, le=1, description="pairs this similar to a held-out one are leaks too")

    def is_given(self, split: str) -> bool:
        return bool(getattr(self, split)) or any(each.split == split for each in self.pairs)


class SpecialIds(Settings):
    """Special ids say where a text begins and ends, what the decoder reads first and what fills a row.

    Pieces learnt here have fixed ones. A model that others trained brings its own: Marian lets the decoder read the padding first, M2M100
    the end, and both sides may begin with a language. Targets always end; a model must learn when to stop.

    SpecialIds()                                       source  4 9 3         target  7 8 3         the decoder reads  2 7 8
    SpecialIds(pad=9, start=9, end=0)                  source  4 9 0         target  7 8 0         the decoder reads  9 7 8
    SpecialIds(pad=1, start=2, end=2,                  source  50 4 9 2      target  51 7 8 2      the decoder reads  2 51 7 8
               source_begin=[50], target_begin=[51])
    """

    pad: NonNegativeInt = PAD
    start: NonNegativeInt = START
    end: NonNegativeInt = END
    source_begin: tuple[NonNegativeInt, ...] = ()
    target_begin: tuple[NonNegativeInt, ...] = ()
    source_ends: bool = True

    @model_validator(mode="after")
    def _padding_is_told_apart(self) -> Self:
        """A row is as long as it has ids that are no padding. `start` may be it: the decoder's input is as long as its output."""
        if self.pad in (self.end, *self.source_begin, *self.target_begin):
            raise ValueError(f"pad={self.pad} is also the end or a beginning; padding has an id of its own")
        return self

    @property
    def around(self) -> tuple[int, int]:
        """How many ids stand around the pieces of a source and of a target."""
        return len(self.source_begin) + self.source_ends, len(self.target_begin) + 1

    @property
    def largest(self) -> tuple[int, int]:
        """The largest id on each side, which its vocabulary must have."""
        source = [self.pad, *self.source_begin, *([self.end] if self.source_ends else [])]
        return max(source), max(self.pad, self.start, self.end, *self.target_begin)


class PrepareSettings(SparseSettings):
    """These settings decide the whole of a `prepare`. `languages` are source and target; of several pairs, of the first."""

    rare: ClassVar = {"given_vocabulary", "marks", "both_directions"}
    languages: tuple[str, str]
    corpora: list[CorpusSettings] = Field(min_length=1)
    both_directions: bool = Field(default=False, description="every pair is also learnt from target to source")
    normalize: tuple[Step, ...] = DEFAULT_STEPS
    filters: FilterSettings = FilterSettings()
    dedup: DedupSettings = DedupSettings()
    held_out: HeldOutSettings = HeldOutSettings()
    pieces: PieceSettings = PieceSettings()
    given_pieces: list[str] = Field(
        default=[],
        max_length=2,
        description="SentencePiece models to use instead of learning: one, or source and target",
    )
    given_vocabulary: list[str] = Field(
        default=[],
        max_length=2,
        description="their ids, where SentencePiece's are not the model's: one list, or source and target",
    )
    marks: SpecialIds | None = Field(
        default=None,
        description="the ids around a text, of a model that others trained; by default those of learnt pieces",
    )
    keep_dropped: bool = Field(default=False, description="write dropped pairs with their reason to dropped/")
    shard_megabytes: int = Field(default=32, ge=1, le=1024, description="of text, before the ids")
    seed: int = 17

    @model_validator(mode="after")
    def _names_differ(self) -> Self:
        names = [corpus.name for corpus in self.corpora]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"corpora: the names {', '.join(twice)} occur twice; the report tells corpora apart by name")
        return self

    @model_validator(mode="after")
    def _numbers_are_of_given_pieces(self) -> Self:
        if (self.given_vocabulary or self.marks) and not self.given_pieces:
            raise ValueError("given_vocabulary and marks: only for given_pieces; pieces learnt here have their own ids")
        return self

    @model_validator(mode="after")
    def _languages_are_learnt(self) -> Self:
        if self.languages not in self.stored:
            known = ", ".join(" to ".join(pair) for pair in dict.fromkeys(self.stored))
            raise ValueError(f"languages: no corpus is {' to '.join(self.languages)}; name a pair that there is: {known}")
        strange = [each.languages for each in self.held_out.pairs if each.languages not in self.directions]
        if strange:
            told = ", ".join(" to ".join(pair) for pair in strange)
            raise ValueError(f"held_out.pairs: no corpus is {told}; leave the set out, or give text of this pair")
        apart = len(self.given_pieces) == 2 or not (self.given_pieces or self.pieces.joint)
        if self.both_directions and apart:
            raise ValueError("both_directions: a sentence is source and target, so both need the same pieces; set pieces.joint=true")
        _ = self.tag_set  # refused now, not after hours
        return self

    @cached_property
    def stored(self) -> tuple[Direction, ...]:
        """Source and target of the pairs of each corpus as they are stored, then of each given set. With `both_directions` en-de and de-en
        are stored alike."""
        asked = [corpus.languages or self.languages for corpus in self.corpora]
        asked += [each.languages for each in self.held_out_sets]
        if not self.both_directions:
            return tuple(asked)
        order = dict.fromkeys([self.languages, *asked])
        known: dict[frozenset[str], Direction] = {}
        for pair in order:
            known.setdefault(frozenset(pair), pair)
        return tuple(known[frozenset(pair)] for pair in asked)

    @cached_property
    def held_out_sets(self) -> tuple[HeldOutSet, ...]:
        """Given sets, in the order of their corpora: those of the first pair, then others, of valid and then of test."""
        found: list[HeldOutSet] = []
        for split in ("valid", "test"):
            if paths := getattr(self.held_out, split):
                found.append(HeldOutSet(split=split, languages=self.languages, paths=paths))
            found += [each for each in self.held_out.pairs if each.split == split]
        return tuple(found)

    @cached_property
    def directions(self) -> tuple[Direction, ...]:
        """Every direction that is learnt: the first pair, the others, and with `both_directions` all of them turned round."""
        forward = tuple(dict.fromkeys([self.languages, *self.stored[: len(self.corpora)]]))
        turned = tuple(pair[::-1] for pair in forward) if self.both_directions else ()
        return tuple(dict.fromkeys([*forward, *turned]))

    @cached_property
    def tag_set(self) -> TagSet:
        """What sources are told: the target where there is more than one direction, and the names of the corpora. Rows may have more."""
        targets = [target for _, target in self.directions] if len(self.directions) > 1 else []
        names = [name for corpus in self.corpora for name in corpus.tags]
        return TagSet(languages=tuple(dict.fromkeys(targets)), names=tuple(dict.fromkeys(names)))

    @cached_property
    def pivot(self) -> str | None:
        """The language that most pairs share, whose sentences are held out in all of them; None for one pair."""
        pairs = list(dict.fromkeys(self.stored))
        if len(pairs) == 1:
            return None
        count = Counter(code for pair in [self.languages, *pairs] for code in pair)
        return max(count, key=lambda code: count[code])  # the first of equals: the first source
