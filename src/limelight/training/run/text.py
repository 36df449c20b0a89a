"""The text of a run is prepared in its folder, or comes from where it was prepared before."""

from collections.abc import Callable
from pathlib import Path

from limelight.corpus.cleaning.mistakes import summary
from limelight.corpus.config import PrepareSettings
from limelight.corpus.exchange.engine import ExchangeEngine, Progress
from limelight.corpus.feeding.shards import PreparedCorpus
from limelight.corpus.manifest import CorpusManifest
from limelight.corpus.prepare import prepare
from limelight.corpus.remote import place_prepared
from limelight.corpus.work_folder import REPORT
from limelight.errors import ConfigError
from limelight.training.recipe.replay import mix_old_text
from limelight.training.recipe.request import TrainRequest
from limelight.training.run_folder import PREPARED, RunChoice


def prepare_text(
    asked: TrainRequest, run: Path, engine: ExchangeEngine, progress: Callable[[Progress], None], say: Callable[[RunChoice], None]
) -> PreparedCorpus:
    place, settings = run / PREPARED, asked.data or (asked.recipe.data if asked.recipe else None)
    if settings is None:
        raise ConfigError("there is nothing to train on; name two files, such as corpus.en corpus.de")
    if asked.prepared is not None:
        place_prepared(asked.prepared, place)
        found = PreparedCorpus.open(place)
        say(RunChoice("text", summary(found.manifest.corpora), f"prepared before: {asked.prepared}"))
        return found

    def into_place(wanted: PrepareSettings) -> CorpusManifest:
        return prepare(wanted, place, engine, progress, force=True, anyway=asked.anyway)[0]

    if (old := asked.old_text) is not None:
        seed = asked.seed if asked.seed is not None else int(asked.changes.get("seed", 1))
        settings = mix_old_text(settings, old, run, seed, into_place)
        say(RunChoice("replay", *old.described))
    say(RunChoice("text", summary(into_place(settings).corpora), f"what was dropped: {place / REPORT}"))
    return PreparedCorpus.open(place)
