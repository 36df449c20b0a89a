"""`limelight inspect` traces one sentence and shows where each head looks, on screen or in a file."""

import json
import shutil
import sys
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from limelight.cli.fetching import Yes
from limelight.cli.inspect.causes import CauseOptions
from limelight.cli.inspect.desk import desk_view, open_desk, say
from limelight.cli.inspect.lines import InspectOutput, tensor
from limelight.cli.inspect.pruning import HeadOptions
from limelight.cli.inspect.request import InterventionOptions, cell_of, changes_of, head_of
from limelight.errors import ConfigError, DataError, ModelFileError

if TYPE_CHECKING:
    from limelight.inspection.drawing.svg import Picture
    from limelight.inspection.head_names import Head
    from limelight.inspection.interventions import Changes
    from limelight.inspection.tracing.live_trace import LiveTrace
    from limelight.training.checkpoints.checkpoint import CheckpointSummary
    from limelight.translator.translate import Translator

EXAMPLES = (
    'limelight inspect en-de "A cat sits on the mat."',
    'limelight inspect en-de "A cat sits on the mat." --mute c5.2 --all --html cat.html',
    'limelight inspect multi "A cat sits on the mat." --to fr --tag formal --hide 1',
    'limelight inspect en-de "A cat sits on the mat." --explain c5.2:1,1 --tensor enc.0.scores',
    'limelight inspect en-de "A cat sits on the mat." --why Katze --instead-of Hund',
    "limelight inspect runs/en-de --checkpoints",
)
SOUND = "sound"
GOES_ON = "sound; the run goes on from here"
IN_A_PIPE = 100  # columns, where no terminal says how many it has


class KindName(StrEnum):
    enc = "enc"
    dec = "dec"
    cross = "cross"


class PictureName(StrEnum):
    heat = "heat"
    heads = "heads"
    ribbon = "ribbon"


def inspect(
    bundle: Annotated[Path, typer.Argument(help="Folder of a bundle, or of a run.")],
    text: Annotated[str | None, typer.Argument(help="One sentence.")] = None,
    to: Annotated[str | None, typer.Option("--to", help="Language to translate into, of a model that has several.")] = None,
    source: Annotated[str | None, typer.Option("--from", help="Language of the text, of a model that has several.")] = None,
    tag: Annotated[list[str] | None, typer.Option("--tag", help="What the model is told beside, such as formal. Repeatable.")] = None,
    head: Annotated[str, typer.Option("--head", help="c5.2 or cross.5.2: layer 5, head 2, from 0. auto: the one that aligns.")] = "auto",
    kind: Annotated[KindName | None, typer.Option("--kind", help="A head of the encoder, the decoder or the cross-attention.")] = None,
    every: Annotated[bool, typer.Option("--all", help="A line for every head: entropy, diagonal, mass on the end.")] = False,
    target: Annotated[str | None, typer.Option("--target", help="Look at this translation instead of searching one.")] = None,
    prefix: Annotated[str, typer.Option("--prefix", help="The translation begins with this.")] = "", yes: Yes = False,
    beam: Annotated[int | None, typer.Option("--beam", min=1, help="Hypotheses kept by the search.")] = None,
    mute: Annotated[list[str] | None, typer.Option("--mute", metavar="HEAD", help="Turn heads off: c5.2, c5.*. Repeatable.")] = None,
    solo: Annotated[list[str] | None, typer.Option("--solo", metavar="HEAD", help="Turn off all others of the kind.")] = None,
    dim: Annotated[list[str] | None, typer.Option("--dim", metavar="HEAD=N", help="Turn down: c5.2=0.4.")] = None,
    mean: Annotated[bool, typer.Option("--mean", help="A dark head gives the mean of what it sees, not nothing.")] = False,
    hide: Annotated[list[int] | None, typer.Option("--hide", min=0, metavar="N", help="Hide source piece N, from 0.")] = None,
    positions: Annotated[str, typer.Option("--positions", help="normal, zero, shuffle:SEED or shift:K.")] = "normal",
    temperature: Annotated[float, typer.Option("--temperature", help="Of attention: below 1 sharpens, above 1 flattens.")] = 1.0,
    tensor: Annotated[list[str] | None, typer.Option("--tensor", metavar="NAME", help="Print a stage: enc.0.scores.")] = None,
    explain: Annotated[list[str] | None, typer.Option("--explain", metavar="HEAD:R,C", help="How a weight comes about.")] = None,
    why: Annotated[str | None, typer.Option("--why", metavar="WORD", help="What a word, or piece N, of the translation came from.")] = None,
    instead_of: Annotated[str | None, typer.Option("--instead-of", metavar="WORD", help="With --why: and not this word.")] = None,
    method: Annotated[str, typer.Option("--method", help="With --why: occlusion, value-zeroing, gradient, integrated.")] = "occlusion",
    check: Annotated[bool, typer.Option("--check", help="Words that nothing came from, and that came from nothing.")] = False,
    patch_from: Annotated[str | None, typer.Option("--patch-from", metavar="TEXT", help="With --why: put in parts of this.")] = None,
    places: Annotated[str, typer.Option("--places", help="With --patch-from: source, target or heads.")] = "source",
    importance: Annotated[str | None, typer.Option("--importance", metavar="FILE|N", help="Mute each head over these sentences.")] = None,
    prune: Annotated[int | None, typer.Option("--prune", min=1, metavar="N", help="Cut N heads out of each attention.")] = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Of --prune: the smaller bundle.")] = None,
    html: Annotated[Path | None, typer.Option("--html", help="The desk in one file.")] = None,
    svg: Annotated[Path | None, typer.Option("--svg", help="A picture.")] = None,
    png: Annotated[Path | None, typer.Option("--png", help="A picture; pip install 'limelight[pictures]'.")] = None,
    npz: Annotated[Path | None, typer.Option("--npz", help="Every stage, for NumPy.")] = None,
    save: Annotated[list[Path] | None, typer.Option("--save", metavar="FILE", help="By its ending, also .json and .csv.")] = None,
    picture: Annotated[PictureName | None, typer.Option("--picture", help="What --svg and --png show; by default a head.")] = None,
    open_page: Annotated[bool, typer.Option("--open", help="Serve the desk with this sentence, until Ctrl-C.")] = False,
    port: Annotated[int | None, typer.Option("--port", help="With --open; 0: any that is free.")] = None,
    device: Annotated[str | None, typer.Option("--device", help="cpu, cuda, mps ...; the accelerator if there is one.")] = None,
    threads: Annotated[int | None, typer.Option("--threads", min=1, help="Cores to use; all that this process may.")] = None,
    checkpoints: Annotated[bool, typer.Option("--checkpoints", help="Of a run: what it can go on from, and what is damaged.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="The whole trace as JSON on standard output.")] = False,
) -> None:  # fmt: skip
    """Translate one sentence and look inside: where each head looks, how sure each piece is, what changes when a head is dark."""
    if checkpoints:
        show_checkpoints(bundle, as_json)
        raise typer.Exit
    from limelight.translator.translate import Translator

    changes = changes_of(InterventionOptions(mute or (), solo or (), dim or (), hide or (), positions, temperature, mean))
    heads, files = HeadOptions(importance, prune, output), [each for each in (html, svg, png, npz, *(save or ())) if each is not None]
    found, causes = InspectOutput(), CauseOptions(why, instead_of, method, check, patch_from, places)
    look = InspectRequest(head, kind, every, target, prefix, beam, tensor or [], explain or [], files, picture, as_json, causes)
    check_sense(look, text, importance, open_page, bool(to or source or tag))
    with Translator.load(bundle, device=device, dtype="float32", threads=threads, engine="torch") as loaded:
        heads.judge(translator := loaded.towards(to, source, tag or ()), bundle, found, as_json)
        _inspect_text(translator, text, changes, look, found)
    _print(found, as_json)
    if open_page and text is not None:
        raise typer.Exit(open_desk(bundle, desk_view(text, changes, found.head, target, found.prefix, beam), port, threads, True, say))


@dataclass(frozen=True)
class InspectRequest:
    head: str
    kind: KindName | None
    every: bool
    target: str | None
    prefix: str
    beam: int | None
    tensors: list[str]
    cells: list[str]
    files: list[Path]
    picture: PictureName | None
    as_json: bool
    causes: CauseOptions


def check_sense(look: InspectRequest, text: str | None, importance: str | None, open_page: bool, aimed: bool = False) -> None:
    """Before anything is loaded: is there something to do, and a place for all of it?"""
    needs_text = {"--open": open_page, "a file": look.files, "--tensor": look.tensors, "--explain": look.cells}
    needs_text |= look.causes.check_sense()
    given = [name for name, each in needs_text.items() if each]
    if text is None and (importance is None or given):
        what = f"{' and '.join(given)} cannot be had of no sentence" if given else "there is nothing to look at"
        raise ConfigError(f'{what}; give a sentence, such as limelight inspect en-de "A cat sits on the mat."')
    if open_page and aimed:
        raise ConfigError("--open shows the desk, where languages and tags are chosen on the page; leave out --to, --from and --tag")
    if look.as_json and (look.tensors or look.cells):
        raise ConfigError(
            "--json prints the trace and nothing else, so --tensor and --explain have no place; leave out --json, or save all stages "
            "with --npz"
        )


def _inspect_text(translator: "Translator", text: str | None, changes: "Changes", look: InspectRequest, found: InspectOutput) -> None:
    if text is None:
        return
    own = translator.settings.search
    search = own if look.beam is None else own.changed(beam=look.beam, groups=1)
    trace = translator.trace(text, look.target, prefix=look.prefix, changes=changes, search=search)
    head = head_of(trace, look.head, look.kind)
    at, picture = len(found.lines), look.picture or (PictureName.heads if look.every else PictureName.heat)
    patched = look.causes.find(trace, lambda other: translator.trace(other, changes=changes, search=search), found)
    for path in look.files:
        trace_to(trace, path, head, picture, patched)
        found.written.append(path)
    found.head = str(head)
    found.prefix = translator.target_ids([look.prefix])[0] if look.prefix else []
    if look.as_json:
        found.values = {**trace.as_json(encoding="f32"), **found.values}
    found.lines[at:at] = _lines(trace, head, look.every, look.head != "auto" or look.kind is not None)
    found.lines += [line for name in look.tensors for line in ("", *tensor(trace, name))]
    found.lines += [line for cell in look.cells for line in ("", *str(trace.explain(*cell_of(cell))).split("\n"))]


def trace_to(trace: "LiveTrace", path: Path, head: "Head", picture: PictureName, patched: "Picture | None" = None) -> None:
    from limelight.inspection.drawing.heatmaps import overview
    from limelight.inspection.drawing.ribbon import ribbon
    from limelight.inspection.saving.files import save

    drawn = patched
    if path.suffix.lower() in (".svg", ".png") and picture != PictureName.heat and patched is None:
        drawn = overview(trace) if picture == PictureName.heads else ribbon(trace)
    save(trace, path, head=str(head), picture=drawn)


def _lines(trace: "LiveTrace", head: "Head", every: bool, asked: bool) -> list[str]:
    """The sentence, then one head; with --all every head, and the map only of one that was asked for."""
    from limelight.inspection.drawing.terminal import every_head, heat, summary

    lines = [*summary(trace), ""]
    if every:
        lines += every_head(trace)
    if asked or not every:
        lines += [""] * every + heat(trace, head, shutil.get_terminal_size((IN_A_PIPE, 24)).columns)
    return lines


def _print(found: InspectOutput, as_json: bool) -> None:
    from limelight.cli.train.live_state import harmless

    told = [f"wrote {path}" for path in found.written]
    if as_json:
        sys.stdout.write(json.dumps(found.values, ensure_ascii=False) + "\n")
        typer.echo("\n".join(told), err=True, nl=bool(told))
        return
    sys.stdout.write("".join(f"{harmless(line)}\n" for line in [*found.lines, *told]))


def show_checkpoints(run: Path, as_json: bool) -> None:
    """Prints them, the newest first. If there are some and none is sound, that is an error: the run cannot go on."""
    from limelight.training.checkpoints.checkpoint import list_checkpoints
    from limelight.training.run_folder import CHECKPOINTS

    found = list_checkpoints(run / CHECKPOINTS)
    if not found:
        raise DataError(f"{run} has no checkpoints; name the folder of a run that has trained for some minutes")
    if as_json:
        values = [{**vars(each), "folder": str(each.folder), "sound": not each.problems} for each in found]
        sys.stdout.write(json.dumps(values) + "\n")
    else:
        sys.stdout.write("".join(f"{line}\n" for line in _table(found)))
    if all(each.problems for each in found):
        raise ModelFileError(
            f"{run} cannot go on, every checkpoint of it is damaged; to begin again from the first step, copy its bundle, which gives way, "
            f"and remove {run / CHECKPOINTS}"
        )


def _table(found: list["CheckpointSummary"]) -> list[str]:
    from limelight.cli.train.live_state import harmless

    rows = [("step", "size", "written", "as", "state")]
    newest = next((each for each in found if not each.problems), None)
    for each in found:
        when = datetime.fromtimestamp(each.when).strftime("%Y-%m-%d %H:%M:%S") if each.when else "-"
        layout = f"{each.shards} shard{'s' * (each.shards > 1)}" if each.shards else "whole"
        state = "; ".join(each.problems) or (GOES_ON if each is newest else SOUND)
        rows.append((str(each.step), f"{each.bytes / 1e6:.1f} MB", when, layout, harmless(state)))
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    return ["  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[4]]) for row in rows]
