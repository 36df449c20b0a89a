"""Sections about the setup tell how to reproduce a run, and its data, model and compute."""

import shlex
from collections import Counter
from typing import Any

from limelight.corpus.config import PrepareSettings
from limelight.corpus.report import report as corpus_report
from limelight.corpus.report.lengths import SPLITS
from limelight.corpus.report.markup import STYLE, Figure, figure, share
from limelight.errors import LimelightError
from limelight.model.config import PRESETS, ModelConfig
from limelight.training.config import Recipe
from limelight.training.report.blocks import (
    Bar,
    Block,
    Cell,
    Code,
    Details,
    Listing,
    Paragraph,
    RawHtml,
    Section,
    Table,
    duration,
    short_number,
)
from limelight.training.report.run_record import DAMAGED, RunRecord
from limelight.training.run_folder import RECIPE


def reproduce(record: RunRecord) -> Section:
    facts, recipe = record.facts, record.recipe
    blocks: list[Block] = []
    if facts.command:
        blocks += [Listing(shlex.join(facts.command))]
    if recipe:
        again = shlex.join(["limelight", "train", str(record.run / RECIPE), "-o", f"{record.run}-again"])
        told = "The recipe alone does the same, with the choices made then"
        told += ", but for the number of steps, which follows the clock when there is a budget" * bool(
            recipe.budget_seconds
        )
        blocks += [Paragraph([f"{told}:"]), Listing(again)]
    known: list[tuple[str, Cell]] = []
    if recipe:
        known.append(("seed", str(recipe.seed)))
    known.append(("commit", Code(facts.commit) if facts.commit else "not started in a repository"))
    if facts.began:
        known.append(("began", facts.began))
    known += [(name, version) for name, version in facts.versions.items()]
    blocks.append(Table("Versions", ["what", "which"], known))
    if facts.chosen:
        rows = [[each.name, each.value, each.why] for each in facts.chosen]
        blocks.append(Table("Chosen by the run itself", ["what", "value", "why"], rows))
    if recipe:
        blocks += _differences(recipe)
    if record.manifest:
        files: list[list[Cell]] = [
            [Code(path), Code(sha256)]
            for entry in record.manifest.inputs
            for path, sha256 in zip(entry.paths, entry.sha256, strict=True)
        ]
        prepared: list[Cell] = ["all of it, prepared", Code(record.manifest.address)]
        blocks.append(Details("Hashes of the data", [Table("Data", ["file", "SHA-256"], [*files, prepared])]))
    return Section("Reproduce", blocks)


def _differences(recipe: Recipe) -> list[Block]:
    """What is not as it would be by default: of the model against the preset of its size, if there is one."""
    preset, usual = defaults_of(recipe)
    mine, theirs = (_flat(each.model_dump(mode="json")) for each in (recipe, usual))
    rows: list[list[Cell]] = [
        [Code(key), Code(_format_value(mine.get(key))), Code(_format_value(theirs.get(key)))]
        for key in sorted({*mine, *theirs})
        if mine.get(key) != theirs.get(key)
    ]
    against = f"the preset {preset} and the defaults" if preset else "the defaults"
    if not rows:
        return [Paragraph([f"The recipe is that of {against}, without a change."])]
    return [Table(f"Where the recipe differs from {against}", ["setting", "here", "default"], rows)]


def defaults_of(recipe: Recipe) -> tuple[str | None, Recipe]:
    """The recipe as it would be for the same corpora and the same size of model, and the name of that size."""
    model = recipe.model
    shape = ("encoder_layers", "decoder_layers", "d_model", "d_ff", "num_heads")
    preset = next(
        (name for name, size in PRESETS.items() if all(getattr(model, key) == size[key] for key in shape)), None
    )
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
    return {
        key: leaf
        for name, inner in value.items()
        for key, leaf in _flat(inner, f"{path}.{name}" if path else name).items()
    }


def _format_value(value: Any) -> str:
    return "not set" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def data(record: RunRecord) -> Section:
    manifest = record.manifest
    if manifest is None:
        return Section("Data", [Paragraph(["There is no prepared corpus in this run."])])
    read = sum(corpus.read for corpus in manifest.corpora)
    kept = {split: sum(corpus.kept.get(split, 0) for corpus in manifest.corpora) for split in SPLITS}
    dropped: Counter[str] = Counter()
    for corpus in manifest.corpora:
        dropped.update(corpus.dropped)
    rows: list[list[Cell]] = [["read", figure(read), share(read, read)]]
    rows += [[f"dropped: {why.replace('_', ' ')}", figure(n), share(n, read)] for why, n in dropped.most_common()]
    rows += [[f"kept for {split}", figure(pairs), share(pairs, read)] for split, pairs in kept.items()]
    source, target = manifest.languages
    sizes = sorted({figure(size) for size in manifest.vocab_sizes})
    corpora = "one corpus" if len(manifest.corpora) == 1 else f"{len(manifest.corpora)} corpora"
    told = f"From {source} to {target}, {corpora}, vocabulary of {' and '.join(sizes)} pieces."
    blocks: list[Block] = [Paragraph([told]), Table("Pairs", ["pairs", "number", "of all read"], rows)]
    try:
        blocks.append(Details("The whole report of the corpus", [RawHtml(_corpus_section(record))]))
    except DAMAGED as error:  # statistics of another version; the counts above are there all the same
        blocks.append(Paragraph([f"The report of the corpus cannot be shown ({type(error).__name__})."]))
    return Section("Data", blocks)


def _corpus_section(record: RunRecord) -> str:
    """One level lower than on a page of its own, and without the style that this page has already."""
    assert record.manifest is not None
    made = corpus_report.section(record.manifest).replace(f"<style>{STYLE}</style>", "")
    return made.replace("<h2>", "<h3>").replace("</h2>", "</h3>")


def compute(record: RunRecord) -> Section:
    facts = record.facts
    blocks: list[Block] = []
    if facts.parameters:
        total = sum(facts.parameters.values())
        rows: list[list[Cell]] = [
            [name, figure(number), share(number, total)] for name, number in facts.parameters.items()
        ]
        rows.append(["all", figure(total), share(total, total)])
        blocks.append(Table("Parameters", ["part", "parameters", "of all"], rows))
    blocks.append(Table("What it took", ["what", "how much"], _costs(record)))
    if facts.seconds:
        whole = sum(facts.seconds.values())
        split: list[list[Cell]] = [
            [name, Figure(duration(seconds)), Bar(seconds / whole if whole else 0.0)]
            for name, seconds in facts.seconds.items()
        ]
        blocks.append(Table("Where the time went", ["part", "time", "share"], split))
    if facts.machine:
        blocks.append(Table("Machine", ["what", "which"], [[name, value] for name, value in facts.machine.items()]))
    return Section("Model and compute", blocks)


def _costs(record: RunRecord) -> list[list[Cell]]:
    facts, steps = record.facts, record.steps
    rows: list[list[Cell]] = []
    if steps:
        source, target = (sum(getattr(step, f"{side}_pieces") for step in steps) for side in ("source", "target"))
        rows.append(["steps", figure(len(steps))])
        rows.append(["epochs", Figure(f"{steps[-1].epoch:.1f}")])
        rows.append(["source pieces seen", figure(source)])
        rows.append(["target pieces seen", figure(target)])
    if record.pieces_per_second is not None:
        rows.append(["source + target pieces/s, data included", figure(round(record.pieces_per_second))])
    if facts.flops_per_piece:
        rows.append(["operations per target piece, both passes", short_number(facts.flops_per_piece, "FLOP")])
        working = sum(step.seconds - step.waited for step in steps)
        if working:
            done = facts.flops_per_piece * sum(step.target_pieces for step in steps)
            rows.append(["operations per second", short_number(done / working, "FLOP/s")])
    memory = max([facts.memory, *(step.memory for step in steps)])
    if memory:
        rows.append(["most memory held", short_number(memory, "B")])
    for name, part in (
        ("cells of batches that hold nothing", record.padding),
        ("training time spent waiting for data", record.waiting),
        ("training time outside the model", record.outside),
    ):
        if part is not None:
            rows.append([name, share(round(part * 1e6), 1_000_000)])
    if record.skipped:
        rows.append(["steps left out", figure(len(record.skipped))])
    return rows or [["steps", figure(0)]]
