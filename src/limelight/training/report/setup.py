"""Sections about the setup tell how to reproduce a run, its data, model and compute, and which commands come next."""

import shlex
from collections import Counter
from typing import Any

from limelight.corpus.config import PrepareSettings
from limelight.corpus.report.report import describe, totals
from limelight.errors import LimelightError
from limelight.model.config import PRESETS, ModelConfig
from limelight.reporting.blocks import Bar, Block, Cell, Code, Details, HtmlOnly, Listing, Section, Table
from limelight.reporting.units import Figure, decimal, figure, share, short_figure, time_taken
from limelight.training.config import Recipe
from limelight.training.report.advice_learning import lengthen_command
from limelight.training.report.run_record import DAMAGED, RunRecord
from limelight.training.run_folder import PREPARED, RECIPE


def reproduce(record: RunRecord) -> Section:
    facts, recipe = record.facts, record.recipe
    blocks: list[Block] = [Listing(shlex.join(facts.command))] if facts.command else []
    known: list[tuple[str, Cell]] = []
    if recipe:
        told = "The recipe alone does the same, with the choices made then"
        if recipe.budget_seconds:
            told += ", but for the number of steps, which follows the clock when there is a budget"
        again = ["limelight", "train", str(record.run / RECIPE), "-o", f"{record.run}-again"]
        blocks += [f"{told}:", Listing(shlex.join(again))]
        known.append(("seed", str(recipe.seed)))
    known.append(("commit", Code(facts.commit) if facts.commit else "not started in a repository"))
    if facts.began:
        known.append(("began", facts.began))
    blocks.append(Table("Versions", ["what", "which"], [*known, *facts.versions.items()]))
    if facts.chosen:
        rows = [[each.name, each.value, each.why] for each in facts.chosen]
        blocks.append(Table("Chosen by the run itself", ["what", "value", "why"], rows))
    if recipe:
        blocks.append(_differences(recipe))
    if record.manifest:
        files = [(each.paths, each.sha256) for each in record.manifest.inputs]
        hashes: list[list[Cell]] = [[Code(path), Code(sha256)] for each in files for path, sha256 in zip(*each, strict=True)]
        hashes.append(["all of it, prepared", Code(record.manifest.address)])
        blocks.append(Details("Hashes of the data", [Table("Data", ["file", "SHA-256"], hashes)]))
    return Section("Reproduce", blocks)


def _differences(recipe: Recipe) -> Block:
    preset, usual = defaults_of(recipe)
    mine, theirs = (_flat(each.model_dump(mode="json")) for each in (recipe, usual))
    rows: list[list[Cell]] = [
        [Code(key), Code(_format_value(mine.get(key))), Code(_format_value(theirs.get(key)))]
        for key in sorted({*mine, *theirs})
        if mine.get(key) != theirs.get(key)
    ]
    against = f"the preset {preset} and the defaults" if preset else "the defaults"
    if not rows:
        return f"The recipe is that of {against}, without a change."
    return Table(f"Where the recipe differs from {against}", ["setting", "here", "default"], rows)


def defaults_of(recipe: Recipe) -> tuple[str | None, Recipe]:
    """The recipe as it would be for the same corpora and the same size of model, and the name of that size."""
    model = recipe.model
    shape = ("encoder_layers", "decoder_layers", "d_model", "d_ff", "num_heads")
    preset = next((name for name, size in PRESETS.items() if all(getattr(model, key) == size[key] for key in shape)), None)
    vocabularies = {"vocab_size": model.vocab_size, "source_vocab_size": model.source_vocab_size}
    try:
        usual = ModelConfig(**{**(PRESETS[preset] if preset else {}), **vocabularies, "tie": model.tie})
        data = PrepareSettings(languages=recipe.data.languages, corpora=recipe.data.corpora)
        return preset, Recipe(data=data, model=usual)
    except LimelightError:  # a vocabulary that only fits what was changed; then all is shown against itself
        return None, recipe


def _flat(value: Any, path: str = "") -> dict[str, Any]:
    if not isinstance(value, dict):
        return {path: value}
    return {key: leaf for name, inner in value.items() for key, leaf in _flat(inner, f"{path}.{name}" if path else name).items()}


def _format_value(value: Any) -> str:
    return "not set" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def data(record: RunRecord) -> Section:
    manifest = record.manifest
    if manifest is None:
        return Section("Data", ["There is no prepared corpus in this run."])
    read, kept, dropped = totals(manifest)
    rows = [["read", figure(read), share(read, read)]]
    most_first = Counter(dropped).most_common()
    rows += [[f"dropped: {why.replace('_', ' ')}", figure(n), share(n, read)] for why, n in most_first]
    rows += [[f"kept for {split}", figure(pairs), share(pairs, read)] for split, pairs in kept.items()]
    sizes = sorted({figure(size) for size in manifest.vocab_sizes})
    corpora = "one corpus" if len(manifest.corpora) == 1 else f"{len(manifest.corpora)} corpora"
    way = f"From {manifest.described}" if len(manifest.directions) == 1 else f"{len(manifest.directions)} directions ({manifest.described})"
    told = f"{way}, {corpora}, vocabulary of {' and '.join(sizes)} pieces."
    if record.recipe and (made_by := record.recipe.teacher):
        told += f" It was trained on translations made by {made_by}; a test set that was split off from them has these as references."
    blocks: list[Block] = [told, Table("Pairs", ["pairs", "number", "of all read"], rows)]
    try:
        blocks.append(HtmlOnly([Details("The whole report of the corpus", describe(manifest, level=3))]))
    except DAMAGED as error:  # statistics of another version; the counts above are there all the same
        blocks.append(f"The report of the corpus cannot be shown ({type(error).__name__}).")
    return Section("Data", blocks)


def compute(record: RunRecord) -> Section:
    facts = record.facts
    blocks: list[Block] = []
    if facts.parameters:
        total = sum(facts.parameters.values())
        parts = [*facts.parameters.items(), ("all", total)]
        rows = [[name, figure(number), share(number, total)] for name, number in parts]
        blocks.append(Table("Parameters", ["part", "parameters", "of all"], rows))
    blocks.append(Table("What it took", ["what", "how much"], _costs(record)))
    if facts.seconds:
        whole = sum(facts.seconds.values())
        split: list[list[Cell]] = [
            [name, time_taken(seconds), Bar(seconds / whole if whole else 0.0)] for name, seconds in facts.seconds.items()
        ]
        blocks.append(Table("Where the time went", ["part", "time", "share"], split))
    if facts.machine:
        blocks.append(Table("Machine", ["what", "which"], list(facts.machine.items())))
    return Section("Model and compute", blocks)


def _costs(record: RunRecord) -> list[tuple[str, Figure]]:
    facts, steps = record.facts, record.steps
    rows: list[tuple[str, Figure]] = []
    target = sum(step.target_pieces for step in steps)
    if steps:
        rows += [
            ("steps", figure(len(steps))),
            ("epochs", decimal(record.epochs, 1)),
            ("source pieces seen", figure(sum(step.source_pieces for step in steps))),
            ("target pieces seen", figure(target)),
        ]
    if record.pieces_per_second is not None:
        rows.append(("source + target pieces/s, data included", figure(round(record.pieces_per_second))))
    if facts.flops_per_piece:
        rows.append(("operations per target piece, both passes", short_figure(facts.flops_per_piece, "FLOP")))
        if working := sum(step.seconds - step.waited for step in steps):
            rows.append(("operations per second", short_figure(facts.flops_per_piece * target / working, "FLOP/s")))
    if memory := max([facts.memory, *(step.memory for step in steps)]):
        rows.append(("most memory held", short_figure(memory, "B")))
    for name, part in (
        ("cells of batches that hold nothing", record.padding),
        ("training time spent waiting for data", record.waiting),
        ("training time outside the model", record.outside),
    ):
        if part is not None:
            rows.append((name, share(part, 1)))
    if record.skipped:
        rows.append(("steps left out", figure(len(record.skipped))))
    return rows or [("steps", figure(0))]


def following(record: RunRecord) -> Section:
    run = str(record.run)
    commands = []
    if record.bundled:
        spoken = [sample.source for valid in record.validations[-1:] for sample in valid.samples[:1]]
        text = spoken[0] if spoken else "A sentence."
        commands.append(("Translate", ["limelight", "translate", run, text]))
        if record.manifest:
            commands.append(("Evaluate", ["limelight", "evaluate", run, f"{run}/{PREPARED}"]))
        commands.append(("Evaluate on another set", ["limelight", "evaluate", run, "test.source", "test.reference"]))
    lines = [f"# {what}\n{shlex.join(words)}" for what, words in commands]
    if record.state in ("interrupted", "preempted", "failed", "training") and record.facts.command:
        lines.append(f"# Go on from the last checkpoint\n{shlex.join(record.facts.command)}")
    more = lengthen_command(record)
    if more and record.state == "done":
        lines.append(f"# The same for longer\n{more}")
    lines.append(f"# Write this report again\n{shlex.join(['limelight', 'report', run])}")
    return Section("Next", [Listing("\n".join(lines))])
