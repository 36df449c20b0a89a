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
from limelight.corpus.batches import BatchSettings
from limelight.corpus.config import CorpusSettings, HeldOutSettings, PrepareSettings
from limelight.corpus.engine_local import LocalEngine
from limelight.corpus.loader import Loader
from limelight.corpus.prepare import prepare
from limelight.corpus.shards import Prepared
from limelight.model.config import ModelConfig
from limelight.model.transformer import Transformer
from limelight.text.tokenizer import PieceSettings, Tokenizer
from limelight.training.config import (
    AverageSettings,
    CheckpointSettings,
    OptimizerSettings,
    Precision,
    Recipe,
    ScheduleSettings,
    ValidationSettings,
)
from limelight.training.journal import written
from limelight.training.kept import Kept
from limelight.training.loop import Training
from limelight.training.numbers import Numbers
from limelight.training.signals import Stop
from limelight.training.validate import Validator
from limelight.training.watch import Event, StepReport
from train_peers import Gate

DATA = "LIMELIGHT_DATA"
CELLS = 8192  # source and target: about 4,096 target pieces
NEVER = 1_000_000


def prepared_multi30k(folder: Path) -> tuple[Prepared, PrepareSettings]:
    paths = [str(Path(os.environ[DATA]) / "multi30k" / f"train.{language}.gz") for language in ("en", "de")]
    settings = PrepareSettings(
        languages=("en", "de"),
        corpora=[CorpusSettings(name="multi30k", paths=paths)],
        held_out=HeldOutSettings(valid_pairs=200, test_pairs=0),
        pieces=PieceSettings(size=8000),
    )
    with closing(LocalEngine(0)) as engine:
        prepare(settings, folder, engine, lambda progress: None)
    return Prepared.open(folder), settings


def ours(gate: Gate, precision: Precision, size: str = "small") -> None:
    runtime.keep_freed_memory()
    runtime.plant_seed(1)
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
        numbers = Numbers(Transformer(recipe.model).train(), precision)
        tokenizer = Tokenizer.load(prepared.folder / "pieces.model")
        validator = Validator(numbers.model, prepared, (tokenizer, tokenizer), recipe.validation)

        def watch(event: Event) -> None:
            if isinstance(event, StepReport):
                gate(event.target_pieces)

        loader = stack.enter_context(Loader(prepared, recipe.batch))
        told: Any = written(run, watch, stack)
        Training(recipe, run, numbers, loader, validator, Kept(run / "best", 1), told, Stop()).run()
