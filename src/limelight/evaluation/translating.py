"""`translate_set` translates a set of sentences with a bundle and measures the speed."""

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from limelight.bundle.confidence import Calibration
from limelight.bundle.tags import MOST_LISTED
from limelight.corpus.reading.language_tags import closeness, find_nearest, guess_languages
from limelight.decoding.config import SearchSettings
from limelight.errors import DataError
from limelight.evaluation.config import InferenceOptions, Speed
from limelight.text.languages import Direction
from limelight.translator import Translation, Translator
from limelight.translator.confidence import Word

BLOCK = 512  # sentences between two reports: some batches for each worker


@dataclass(frozen=True)
class TranslatedSet:
    texts: list[str]
    languages: tuple[str, str]
    speed: Speed
    warnings: dict[str, int]  # what the translator itself objected to: its code, and in how many sentences
    search: SearchSettings
    runs_on: list[str]
    # Of each sentence its words and its mean probability, as the model claims them.
    claimed: list[tuple[list[Word], float]]
    calibration: Calibration | None  # what the bundle knows about such claims
    learnt: Mapping[str, str | int | float]  # what the bundle says of its training


def translate_set(
    folder: Path,
    source: Sequence[str],
    paths: tuple[str, str] | None = None,
    running: InferenceOptions | None = None,
    watch: Callable[[Speed, int], None] = lambda *_: None,
    probabilities: bool = False,
    direction: Direction | None = None,
) -> TranslatedSet:
    """All of `source` in order. `watch` hears of the speed and of how many sentences there are. `paths` of source and reference are looked
    at for their languages: a set given in the wrong order would be translated for nothing. `probabilities` of pieces are asked for, so
    that words have a confidence with every engine. `direction`: that of the pairs, where it is known."""
    running = running or InferenceOptions()
    with Translator.load(folder, running.device, running.dtype, running.threads) as loaded:
        translator = _aim(loaded, direction or (guess_languages(*paths) if paths else None), running)
        languages, search = translator.settings.languages, translator.settings.search
        _refuse_swapped(paths, languages)
        if direction is not None and any(closeness(a, b) is None for a, b in zip(languages, direction, strict=True)):
            raise DataError(f"the pairs are {' to '.join(direction)}, and the translator goes from {' to '.join(languages)}")
        if running.beam is not None:
            search = search.changed(beam=running.beam)
        if running.batch_pieces is not None:
            translator.batch_pieces = running.batch_pieces
        # As the model claims them, so that a calibration can be fitted, and looked at.
        calibration, translator.calibration = translator.calibration, None
        probabilities = probabilities or calibration is not None  # else an engine that tells none would leave nothing to look at
        translations, warnings = dict[int, Translation](), Counter[str]()
        speed = Speed(0, 0.0, 0, 0)
        # Of like length in a block, longest first: little padding, and what is left takes no longer than what was.
        order = sorted(range(len(source)), key=lambda i: -len(source[i]))
        translator.translate(list(source[:1]), search)  # the first call prepares what later ones find ready
        began = time.monotonic()
        for start in range(0, len(order), BLOCK):
            some = order[start : start + BLOCK]
            made = translator.translate([source[i] for i in some], search, probabilities=probabilities)
            for i, translation in zip(some, made, strict=True):
                translations[i] = translation
                warnings.update({notice.code for notice in translation.warnings})
            speed = Speed(
                start + len(some),
                time.monotonic() - began,
                speed.source_pieces + sum(translation.source_pieces for translation in made),
                speed.target_pieces + sum(len(translation.pieces) for translation in made),
            )
            watch(speed, len(source))
        ordered = [translations[i] for i in range(len(source))]
        texts = [translation.text for translation in ordered]
        claimed = [(translation.words, translation.confidence) for translation in ordered]
        counts, runs_on = dict(warnings.most_common()), list(translator.runs_on)
        return TranslatedSet(texts, languages, speed, counts, search, runs_on, claimed, calibration, translator.settings.trained_on or {})


def _aim(translator: Translator, guess: Direction | None, running: InferenceOptions) -> Translator:
    """The translator in the direction that was asked for, or else in that of the text: of those that it was taught the nearest one."""
    tags, asked = running.tags or (), (running.target, running.source)
    if translator.settings.tags is None:  # the target is then for BLEU alone
        return translator.towards(None, running.source, tags)
    if guess is None or any(asked):
        return translator.towards(*asked, tags)
    if (nearest := find_nearest(guess, translator.directions)) is None:
        taught = ", ".join(f"{source} to {target}" for source, target in translator.directions[:MOST_LISTED])
        raise DataError(
            f"the set goes from {guess[0]} to {guess[1]} by its names, and the translator was taught {taught}: give --from and --to"
        )
    return translator.towards(nearest[1], nearest[0], tags)


def _refuse_swapped(paths: tuple[str, str] | None, languages: tuple[str, str]) -> None:
    guess = guess_languages(*paths) if paths else None
    if guess and paths and all(closeness(a, b) is not None for a, b in zip(languages, guess[::-1], strict=True)):
        raise DataError(
            f"{paths[0]} and {paths[1]} seem to be {guess[0]} and {guess[1]}, and the translator goes from {languages[0]} to "
            f"{languages[1]}: give the files in the other order"
        )
