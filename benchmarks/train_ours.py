"""Our real training loop for `train.py`: prepared shards on disk, the loader, gradient, clipping, watchdog, AdamW, moving average, reports
to a journal on disk. Validation and checkpoints are left out, as for the others.

Prepares Multi30k with 8,000 pieces from the folder that LIMELIGHT_DATA names, so that lengths and vocabulary are those of the others.
"""

import os
import tempfile
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

from limelight import runtime
from limelight.corpus.config import CorpusSettings, HeldOutSettings, PrepareSettings
from limelight.corpus.exchange.engine_local import LocalEngine
from limelight.corpus.feeding.batches import BatchSettings
from limelight.corpus.feeding.loader import Loader
from limelight.corpus.feeding.shards import PreparedCorpus
from limelight.corpus.prepare import prepare
from limelight.model.config import ModelConfig
from limelight.model.transformer import Transformer
from limelight.text.pieces.tokenizer import PieceSettings, Tokenizer
from limelight.training.checkpoints.best_weights import BestWeights
from limelight.training.config import (
    AverageSettings,
    CheckpointSettings,
    OptimizerSettings,
    Precision,
    Recipe,
    ScheduleSettings,
    ValidationSettings,
)
from limelight.training.events import Event, StepReport
from limelight.training.processes.stop_signals import Stop
from limelight.training.processes.world import World
from limelight.training.run.event_writers import add_writers
from limelight.training.run.loop import Parts, TrainingLoop
from limelight.training.step.trained_model import TrainedModel
from limelight.training.validation.validator import Validator
from train_peers import Gate

DATA = "LIMELIGHT_DATA"
CELLS = 8192  # source and target: about 4,096 target pieces
NEVER = 1_000_000


def prepared_multi30k(folder: Path) -> tuple[PreparedCorpus, PrepareSettings]:
    paths = [str(Path(os.environ[DATA]) / "multi30k" / f"train.{language}.gz") for language in ("en", "de")]
    settings = PrepareSettings(
        languages=("en", "de"),
        corpora=[CorpusSettings(name="multi30k", paths=paths)],
        held_out=HeldOutSettings(valid_pairs=200, test_pairs=0),
        pieces=PieceSettings(size=8000),
    )
    with closing(LocalEngine(0)) as engine:
        prepare(settings, folder, engine, lambda progress: None)
    return PreparedCorpus.open(folder), settings


def ours(gate: Gate, precision: Precision, size: str = "small") -> None:
    runtime.keep_freed_memory()
    runtime.set_seed(1)
    with tempfile.TemporaryDirectory(prefix="limelight-") as work, ExitStack() as stack:
        run = Path(work)
        prepared, settings = prepared_multi30k(run / "prepared")
        recipe = Recipe(
            data=settings,
            model=ModelConfig.preset(size, prepared.manifest.vocab_sizes[1]),
            batch=BatchSettings(budget=CELLS, longest=1023),
            schedule=ScheduleSettings(steps=NEVER),
            optimizer=OptimizerSettings(clip=1.0),
            average=AverageSettings(decay=0.999),
            validation=ValidationSettings(every=NEVER),
            checkpoints=CheckpointSettings(every_seconds=float(NEVER)),
        )
        numbers = TrainedModel(Transformer(recipe.model).train(), precision)
        tokenizer = Tokenizer.load(prepared.folder / "pieces.model")
        validator = Validator(numbers.model, prepared, (tokenizer, tokenizer), recipe.validation)

        def watch(event: Event) -> None:
            if isinstance(event, StepReport):
                gate(event.target_pieces)

        loader = stack.enter_context(Loader(prepared, recipe.batch))
        told: Any = add_writers(run, watch, stack)
        parts = Parts(numbers, validator, loader)
        TrainingLoop(recipe, run, parts, BestWeights(run / "best", 1), Stop(), World(), told).run()
