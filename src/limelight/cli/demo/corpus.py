"""The demo learns from generated number words, English to German, by a small recipe. Some of the numbers are never shown to it."""

import zlib
from collections.abc import Sequence
from pathlib import Path
from random import Random

from limelight.cli.demo.numerals import LIMIT, SAY, english, pieces
from limelight.corpus.config import CorpusSettings, DedupSettings, FilterSettings, HeldOutSet, HeldOutSettings, PrepareSettings
from limelight.corpus.feeding.batches import BatchSettings
from limelight.files import write_whole
from limelight.model.config import ModelConfig
from limelight.text.pieces.tokenizer import Tokenizer
from limelight.training.config import (
    AverageSettings,
    CheckpointSettings,
    MachineSettings,
    OptimizerSettings,
    ProbeSettings,
    Recipe,
    ScheduleSettings,
    ValidationSettings,
)

TARGETS = ("de",)
PIECES, PROBES = "pieces.model", "probes.en"
PROBED = (21, 47, 85, 121, 999, 72_345)  # watched while it learns
SIZES = {"train": 20_000, "valid": 200, "test": 1000}
ALWAYS_SHOWN = 21  # smaller numbers are no sum of others: a translator that never saw "twelve" cannot know it
STEPS = 900
SEED = 2017


def is_held_out(number: int) -> bool:
    """A tenth of the numbers, never seen in training."""
    return number >= ALWAYS_SHOWN and zlib.crc32(str(number).encode()) % 10 == 0


def numbers() -> dict[str, list[int]]:
    """By set, all different. Short numbers are as frequent as long ones, though there are few of them."""
    random, found = Random(SEED), {name: dict[int, None]() for name in SIZES}
    found["train"].update(dict.fromkeys(n for n in range(1000) if not is_held_out(n)))
    found["test"].update(dict.fromkeys(n for n in range(100) if is_held_out(n)))
    while any(len(found[name]) < size for name, size in SIZES.items()):
        number = int(10 ** random.uniform(1, 6))
        if number >= LIMIT or number in found["valid"] or number in found["test"]:
            continue
        unseen = "test" if len(found["test"]) < SIZES["test"] else "valid"
        name = unseen if is_held_out(number) else "train"
        if len(found[name]) < SIZES[name]:
            found[name][number] = None
    return {name: list(chosen) for name, chosen in found.items()}


def write_corpus(folder: Path, targets: Sequence[str] = TARGETS) -> None:
    """The same bytes each time."""
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / PIECES, pieces(targets))
    write_whole(folder / PROBES, "".join(f"{english(number)}\n" for number in PROBED).encode())
    for name, chosen in numbers().items():
        for language in ("en", *targets):
            write_whole(folder / f"{name}.{language}", "".join(f"{SAY[language](number)}\n" for number in chosen).encode())


def recipe(corpus: Path, steps: int = STEPS, targets: Sequence[str] = TARGETS) -> Recipe:
    """Small enough to be seen whole: two layers of four heads on either side, 64 wide, 104 pieces. Two targets take twice the steps."""

    def pair(name: str, target: str = "de") -> list[str]:
        return [str(corpus / f"{name}.{language}") for language in ("en", target)]

    others, steps = targets[1:], steps * len(targets)
    held_out = [
        HeldOutSet(split=split, languages=("en", each), paths=tuple(pair(split, each))) for each in others for split in ("valid", "test")
    ]
    more = [CorpusSettings(name=f"numbers-{each}", paths=pair("train", each), languages=("en", each)) for each in others]
    off = {name: "off" for name, field in FilterSettings.model_fields.items() if field.default in ("drop", "warn")}
    return Recipe(
        data=PrepareSettings(
            languages=("en", "de"),
            corpora=[CorpusSettings(name="numbers", paths=pair("train")), *more],
            # The text is right as it is, and numbers are alike: what looks like a fault or a leak elsewhere is none here.
            filters=FilterSettings(**off),
            dedup=DedupSettings(exact=False),
            held_out=HeldOutSettings(valid=tuple(pair("valid")), test=tuple(pair("test")), pairs=tuple(held_out), leaks="off"),
            given_pieces=[str(corpus / PIECES)],
        ),
        model=ModelConfig(
            vocab_size=Tokenizer.load(corpus / PIECES).size,
            encoder_layers=2,
            decoder_layers=2,
            d_model=64,
            d_ff=256,
            num_heads=4,
            norm_order="pre",
            max_length=64,
            dropout=0.1,
        ),
        batch=BatchSettings(budget=2048, seed=SEED),
        optimizer=OptimizerSettings(learning_rate=4e-3),
        schedule=ScheduleSettings(steps=steps, fixed=True, warmup=steps // 10),
        average=AverageSettings(best=1),
        # Often, so that one sees on the desk how the heads find their places.
        validation=ValidationSettings(every=max(1, steps // 18), sentences=SIZES["valid"]),
        probes=ProbeSettings(file=str(corpus / PROBES)),
        checkpoints=CheckpointSettings(every_seconds=30),
        machine=MachineSettings(precision="float32", workers=0),
        seed=SEED,
    )
