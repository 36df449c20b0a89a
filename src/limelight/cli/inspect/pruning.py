"""`limelight inspect BUNDLE --importance 64 --prune 1 -o smaller` writes a bundle without the heads that are needed least."""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from limelight.cli.inspect.lines import InspectOutput, collect_pairs, rank, torch_engine
from limelight.cli.screen import Screen
from limelight.errors import ConfigError

if TYPE_CHECKING:
    from limelight.decoding.config import SearchSettings
    from limelight.engines.torch import TorchEngine
    from limelight.inspection.analysis.importance import Pair
    from limelight.model.transformer import Transformer
    from limelight.translator.translate import Translator


@dataclass(frozen=True)
class HeadOptions:
    sentences: str | None
    count: int | None
    output: Path | None

    def __post_init__(self) -> None:
        if (self.count is None) != (self.output is None):
            raise ConfigError("--prune and -o belong together: how many heads of each attention go, and where the smaller bundle is put")
        if self.count is not None and self.sentences is None:
            raise ConfigError("heads are chosen by sentences; name them with --importance, a file or a number of the run's validation set")
        if self.output is not None and self.output.exists():
            raise ConfigError(f"{self.output} exists already; give -o another name")

    def judge(self, translator: "Translator", folder: Path, found: InspectOutput, quiet: bool) -> None:
        if self.sentences is None or self.count is None or self.output is None:
            rank(translator, folder, self.sentences, quiet, found)
            return
        found.lines += prune_bundle(translator, folder, self.sentences, self.count, self.output, found.values, quiet)
        found.written.append(self.output)


def prune_bundle(
    translator: "Translator", folder: Path, sentences: str, count: int, output: Path, values: dict[str, Any], quiet: bool
) -> list[str]:
    """Every second sentence chooses, and the others, which chose nothing, tell what it costs."""
    from limelight.bundle.bundle import read, write
    from limelight.bundle.layout import GLOSSARY
    from limelight.inspection.analysis.pruning import check_prunable, prune
    from limelight.interop.huggingface.load import license_of

    engine, bundle = torch_engine(translator), read(folder)
    given = len(translator.settings.target_begin)
    check_prunable(engine.model.config, count)
    with Screen(quiet=quiet) as screen:
        pairs, skipped = collect_pairs(translator, folder, sentences, screen)
        if len(pairs) < 2:
            raise ConfigError("one sentence chooses and another tells what it costs; give two or more, better 64")
        pruned = prune(engine.model, pairs[::2], engine.specials, count, lambda done, total: screen.step("prune", done, total), given)
        target = translator.tokenizers[1]
        never = {*target.controls(), *target.placeholders().values()} - {target.end}  # as the trace that found the pairs
        lost, same = compare(engine, pruned.model, pairs[1::2], translator.settings.search.changed(suppress=tuple(never)), given)
    sides = bundle.source_tokenizer, bundle.target_tokenizer
    pieces, numbers = (sides[0].model, sides[1].model), (sides[0].numbers, sides[1].numbers)
    vocabulary = None if None in numbers else numbers
    weights = {name: weight.cpu() for name, weight in pruned.model.state_dict().items()}
    write(output, pruned.adapt(bundle.settings), weights, pieces, license_of(bundle.folder), vocabulary=vocabulary)  # type: ignore[arg-type]
    if (terms := bundle.folder / GLOSSARY).is_file() and not terms.is_symlink():
        shutil.copyfile(terms, output / GLOSSARY)
    gone, tested = pruned.list_pruned(engine.model.config), len(pairs[1::2])
    sizes = [4 * sum(each.numel() for each in model.parameters()) for model in (engine.model, pruned.model)]
    values["pruned"] = {"heads": gone, "bytes": sizes, "per_piece": lost, "sentences": tested, "same": same}
    return [
        f"pruned {count} of {engine.model.config.num_heads} heads of each attention, chosen by {len(pairs[::2])} sentences:",
        " ".join(gone),
        f"weights in float32: {sizes[0] / 1e6:.2f} MB, without them {sizes[1] / 1e6:.2f} MB",
        f"on {tested} other sentences: {lost:+.4f} of a piece's log-probability, {same} of {tested} translated as before",
        *([f"{skipped} more sentences do not fit and were left out"] if skipped else []),
    ]


def compare(
    engine: "TorchEngine", smaller: "Transformer", pairs: "Sequence[Pair]", settings: "SearchSettings", given: int
) -> tuple[float, int]:
    """What a piece of these translations loses on average, and how many the smaller model finds again."""
    from limelight.decoding.steps import Request
    from limelight.engines.torch import TorchEngine

    other = TorchEngine(smaller, engine.specials)
    sources, targets = zip(*pairs, strict=True)
    whole, cut = ([sum(row) for row in each.score(sources, targets)] for each in (engine, other))
    outcomes = other.search([Request(source, target[:given], given=given) for source, target in pairs], settings)
    same = sum(bool(each.hypotheses) and each.hypotheses[0].ids == list(target) for each, target in zip(outcomes, targets, strict=True))
    return (sum(cut) - sum(whole)) / sum(len(target) + 1 for target in targets), same
