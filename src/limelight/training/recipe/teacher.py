"""A teacher translates text for a student, who learns from its translations (sequence-level distillation, Kim and Rush 2016)."""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final

import numpy as np

from limelight.bundle import read
from limelight.bundle.layout import MANIFEST
from limelight.chance import draws, key_of, scale_to_one
from limelight.corpus.config import FilterSettings
from limelight.corpus.feeding.alter import REWRITES, SIGNS, Drawn, Speech
from limelight.corpus.feeding.augment import AugmentSettings
from limelight.corpus.feeding.order import Purpose
from limelight.corpus.reading.lines import read_strings
from limelight.corpus.reading.streams import content_hash
from limelight.decoding.risk import pairwise_chrf
from limelight.engines.torch import TorchEnsemble
from limelight.errors import ConfigError, DataError
from limelight.files import sha256_of, write_whole
from limelight.text.languages import Direction
from limelight.training.recipe.request import refuse_other
from limelight.training.run_folder import BUNDLE, DAMAGED, TEACHER, TRANSLATIONS
from limelight.translator import Translation, Translator

SHARD: Final = 1_000  # lines: what a kill may cost
NOISE: Final[tuple[Drawn, ...]] = ("upper", "title", "lower", "typos", "punctuation")
SIGNED: Final = re.compile(SIGNS)


@dataclass(frozen=True)
class TeacherWork:
    folder: Path
    teachers: Sequence[Path]  # several decide together
    direction: Direction
    text: str
    references: str | None = None
    nbest: int = 1  # translations of which the one nearest to the reference is taken
    noise: int | None = None  # its seed; None: the text as it is

    @property
    def translations(self) -> Path:
        return self.folder / TRANSLATIONS

    def begin(self) -> int:
        """Return the lines to translate. A folder that holds translations of other text, or by others, is refused."""
        counts = {path: sum(len(lines) for lines, _ in read_strings(path)) for path in filter(None, (self.text, self.references))}
        if len(set(counts.values())) > 1:
            told = [f"{path} has {count:,} lines" for path, count in counts.items()]
            raise DataError(f"{' and '.join(told)}; give references that are parallel to the text, line by line")
        if not counts[self.text]:
            raise DataError(f"{self.text} has no lines, so there is nothing to translate; check the name after --text")
        asked, place = self._fingerprint(), self.folder / TEACHER
        try:
            before = json.loads(place.read_bytes())
        except DAMAGED:
            before = asked
        refuse_other(f"{self.translations} holds what was asked for otherwise", before, asked)
        self.folder.mkdir(parents=True, exist_ok=True)
        write_whole(place, json.dumps(asked, indent=1).encode() + b"\n")
        self.translations.mkdir(exist_ok=True)
        return counts[self.text]

    def _fingerprint(self) -> dict[str, Any]:
        files = {"text": content_hash(self.text), "references": self.references and content_hash(self.references)}
        teachers = [sha256_of(read(each, weights=False).folder / MANIFEST) for each in self.teachers]
        return {"teachers": teachers, "languages": list(self.direction), **files, "nbest": self.nbest, "noise": self.noise}

    def go(self, load: Callable[[], Translator], watch: Callable[[int, int], None]) -> None:
        """Write every shard that is missing. `watch` hears how many lines of these are done."""
        lines = self.begin()
        missing = [number for number in range(-(-lines // SHARD)) if not self._place(number).exists()]
        if not missing:
            return
        with load() as translator:
            for done, (number, pairs) in enumerate((at, some) for at, some in enumerate(self._read()) if at in missing):
                watch(done, len(missing))
                write_whole(self._place(number), self._translate(translator, pairs, number * SHARD))
        watch(len(missing), len(missing))

    def _place(self, number: int) -> Path:
        return self.translations / f"{number:05}.jsonl"

    def _read(self) -> Iterator[list[tuple[str, str]]]:
        read = [chain.from_iterable(lines for lines, _ in read_strings(path)) for path in (self.text, self.references or self.text)]
        sides = [(line.removesuffix("\r") for line in lines) for lines in read]
        pairs = zip(*sides, strict=True)
        while shard := list(islice(pairs, SHARD)):
            yield shard

    def _translate(self, translator: Translator, pairs: Sequence[tuple[str, str]], first: int) -> bytes:
        sources = [source for source, _ in pairs]
        if self.noise is not None:
            sources = add_noise(sources, first, self.noise, self.direction[0])
        # What training would drop is not worth the time.
        wanted = [at for at, source in enumerate(sources) if source.strip() and len(source) <= FilterSettings().longest]
        search = translator.settings.search
        if self.references is not None:
            search = search.changed(beam=max(search.beam, self.nbest), nbest=self.nbest)
        made = translator.translate([sources[at] for at in wanted], search)
        chosen = (choose_nearest(each, pairs[at][1]) if self.references else each.text for at, each in zip(wanted, made, strict=True))
        rows = ({"source": sources[at], "target": target} for at, target in zip(wanted, chosen, strict=True))
        return "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows).encode()


def open_teachers(folders: Sequence[Path], direction: Direction, device: str | None = None, threads: int | None = None) -> Translator:
    """One translator, or several that decide together piece by piece, in one direction."""
    loaded = [Translator.load(folder, device, None, threads, "torch" if len(folders) > 1 else None) for folder in folders]
    first = loaded[0]
    if len(loaded) > 1:
        for folder, other in zip(folders, loaded, strict=True):
            if [(each.model, each.numbers) for each in other.tokenizers] != [(each.model, each.numbers) for each in first.tokenizers]:
                raise ConfigError(f"{folder} and {folders[0]} have other pieces, so they cannot decide together; give one of them")
        first = Translator(TorchEnsemble([each.torch_engine for each in loaded]), read(folders[0]).settings, *first.tokenizers)
    return first.towards(direction[1], direction[0])


def name_teachers(folders: Sequence[Path]) -> str:
    """name_teachers([Path("runs/big/bundle")]) -> "big"."""
    places = [folder.resolve() for folder in folders]
    names = [place.parent.name if place.name == BUNDLE else place.name for place in places]
    return re.sub(r"[\x00-\x1f`]", "\ufffd", " and ".join(names))[:300]


def choose_nearest(made: Translation, reference: str) -> str:
    """The translation with the highest chrF against the reference; of equals, the one that the teacher holds to be better."""
    texts = [made.text, *(each.text for each in made.alternatives)]
    return texts[int(pairwise_chrf([*texts, reference])[:-1, -1].argmax())]


def add_noise(lines: Sequence[str], first: int, seed: int, language: str) -> list[str]:
    """The lines as people type them, as often as training would make them so; `first` is the number of the first line."""
    numbers, usual = np.arange(first, first + len(lines), dtype=np.int64), AugmentSettings()
    reach = np.cumsum([usual.share(kind) for kind in NOISE])
    kinds = np.searchsorted(reach, scale_to_one(draws(key_of(seed, Purpose.CHANGE), numbers)), side="right").tolist()
    details = draws(key_of(seed, Purpose.DETAIL), numbers).tolist()
    speech = Speech((language, language), 0)
    drawn = ((line, NOISE[kind] if kind < len(NOISE) else None, detail) for line, kind, detail in zip(lines, kinds, details, strict=True))
    return [
        line if kind is None or SIGNED.search(line) else REWRITES[kind]((line, line), detail, speech)[0] for line, kind, detail in drawn
    ]
