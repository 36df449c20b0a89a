"""The lines that `limelight inspect` prints beside the map show one array, one cell, or which heads matter."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from limelight.cli.screen import Screen
from limelight.errors import ConfigError, DataError

if TYPE_CHECKING:
    from limelight.engines.torch import TorchEngine
    from limelight.inspection.analysis.importance import HeadImportance, Pair
    from limelight.inspection.trace import Trace
    from limelight.translator.translate import Translator

MOST_SENTENCES = 256
SHOWN = 12  # heads of a ranking


@dataclass
class InspectOutput:
    lines: list[str] = field(default_factory=list)
    values: dict[str, Any] = field(default_factory=dict)
    written: list[Path] = field(default_factory=list)
    head: str | None = None
    prefix: list[int] = field(default_factory=list)  # as pieces


def tensor(trace: "Trace", name: str) -> list[str]:
    """Shape, what it holds on the whole, and its corners."""
    import numpy as np

    from limelight.inspection.head_names import full_name, stage_names

    known = stage_names(trace.model.enc_layers, trace.model.dec_layers)
    if full_name(name) not in known:
        last = name.split(".")[-1]
        like = [each for each in known if each.split(".")[-1] == last] or known
        more = ", ..." if len(like) > 8 else ""
        raise ConfigError(f"there is no stage {name}; stages are called {', '.join(like[:8])}{more} (docs/inspect.md has all)")
    found = trace[name]
    seen = found[np.isfinite(found)] if found.dtype.kind == "f" else found
    facts = f"{name}  {list(found.shape)}  {found.dtype}"
    if seen.size:
        facts += f"   from {seen.min():.4g} to {seen.max():.4g}, mean {seen.mean():.4g}"
    with np.printoptions(precision=3, suppress=True, threshold=400, edgeitems=4, linewidth=110):
        return [facts, *str(found).split("\n")]


def rank(translator: "Translator", folder: Path, asked: str | None, quiet: bool, shown: InspectOutput) -> None:
    """The heads, those first whose loss costs most: all of them in the values, some in the lines. None asks for nothing."""
    if asked is None:
        return
    found, sentences, skipped = measure_importance(translator, folder, asked, quiet)
    order = sorted(found, key=lambda each: each.delta_logp)
    names = ("id", "delta_logp", "per_piece")
    shown.values["importance"] = [{name: getattr(each, name) for name in names} for each in order]
    shown.lines += ranking(order, sentences)
    if skipped:
        said = f"{skipped} more sentences of the validation set do not fit and were left out"
        shown.lines.append(said)
        if quiet:
            typer.echo(said, err=True)


def ranking(order: Sequence["HeadImportance"], sentences: int) -> list[str]:
    """The heads whose loss costs most, and how many nobody would miss."""
    lines = [
        f"heads that matter, muted one by one, over {sentences} sentences:",
        f"{'head':<12} {'log-probability':>16} {'per piece':>10}",
    ]
    lines += [f"{each.id:<12} {each.delta_logp:>+16.3f} {each.per_piece:>+10.4f}" for each in order[:SHOWN]]
    rest = order[SHOWN:]
    if rest:
        lines.append(f"and {len(rest)} more, from {rest[0].delta_logp:+.3f} to {rest[-1].delta_logp:+.3f}")
    return lines


def measure_importance(translator: "Translator", folder: Path, asked: str, quiet: bool) -> tuple[list["HeadImportance"], int, int]:
    """`asked`: a file of sentences, or how many of the run's validation set. What the model itself makes of them is what counts. Returns
    also how many sentences that were, and how many of the set did not fit."""
    from limelight.inspection.analysis.importance import importance

    engine = torch_engine(translator)
    with Screen(quiet=quiet) as screen:
        pairs, skipped = collect_pairs(translator, folder, asked, screen)
        given = len(translator.settings.target_begin)
        found = importance(engine.model, pairs, engine.specials, lambda done, total: screen.step("mute", done, total), given)
    return found, len(pairs), skipped


def torch_engine(translator: "Translator") -> "TorchEngine":
    from limelight.engines.torch import TorchEngine

    assert isinstance(translator.engine, TorchEngine), "loaded so"
    return translator.engine


def collect_pairs(translator: "Translator", folder: Path, asked: str, screen: Screen) -> tuple[list["Pair"], int]:
    """The sentences and what the model makes of them, as ids; and how many did not fit."""
    texts = _validation(folder, int(asked), translator.settings.languages) if asked.isdecimal() else _lines(Path(asked))
    pairs, skipped = [], 0
    for done, (place, text) in enumerate(texts):
        screen.step("translate", done, len(texts))
        try:
            pairs.append(_pair(translator, text, torch_engine(translator).specials.source_ends))
        except DataError as error:
            if place is not None:
                raise type(error)(f"{place}: {error}") from None
            skipped += 1
    screen.step("translate", len(texts), len(texts))
    return pairs, skipped


def _pair(translator: "Translator", text: str, source_ends: bool) -> "Pair":
    trace = translator.trace(text, nbest=1, topk=1)
    source, target = [each.id for each in trace.source.tokens], [each.id for each in trace.target.tokens]
    return source[:-1] if source_ends else source, target[:-1] if trace.target.finish == "eos" else target


def _lines(path: Path) -> Sequence[tuple[str | None, str]]:
    try:
        content = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise DataError(
            f"--importance {path} cannot be read ({error.strerror}); give a file with a sentence on each line, or a number"
        ) from None
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8 at byte {error.start}; save it as UTF-8") from None
    lines = ((f"{path}, line {number}", line.rstrip("\r")) for number, line in enumerate(content.split("\n"), 1))
    found = [(place, line) for place, line in lines if line.strip()][:MOST_SENTENCES]
    if not found:
        raise DataError(f"{path} has no sentences; put one on each line")
    return found


def _validation(folder: Path, count: int, languages: tuple[str, str]) -> Sequence[tuple[str | None, str]]:
    """Nobody chose these, so they have no place to be told."""
    from limelight.corpus.feeding.shards import PreparedCorpus
    from limelight.training.run_folder import PREPARED
    from limelight.training.validation.direction_sets import sample_directions

    if not count:
        raise ConfigError("--importance 0 judges by no sentence; give a number of sentences, such as 32")
    if not (folder / PREPARED).is_dir():
        raise ConfigError(
            f"{folder} has no validation set, since it is no run of limelight train; give a file with a sentence on each line"
        )
    prepared, most = PreparedCorpus.open(folder / PREPARED), min(count, MOST_SENTENCES)
    sets = sample_directions(prepared.validation_pairs(), most * len(prepared.manifest.directions))
    sources = next((each.sources for each in sets if each.direction == languages), None)
    if sources is None:
        raise ConfigError(f"the validation set of {folder} has nothing from {' to '.join(languages)}; give a file with sentences")
    return [(None, text) for text in sources[:most]]
