"""Corpora and models that are named, as opus:CORPUS/de-en or hf:OWNER/NAME, are fetched after a person agreed to address, size, licence."""

import re
import sys
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from limelight.errors import ConfigError

if TYPE_CHECKING:
    from limelight.interop.huggingface.hub import Kind
    from limelight.interop.offers import PublishedOffer

Yes = Annotated[bool, typer.Option("--yes", help="Fetch what opus: and hf: name, and do not ask.")]
_TEXT: "dict[str, Kind]" = dict.fromkeys(("inputs", "valid", "test", "pair"), "corpus")
# What may be named so, by verb and parameter. All else that is given, texts above all, is what it is.
PLACES: "dict[str, dict[str, Kind]]" = {
    "prepare": _TEXT,
    "train": {**_TEXT, "replay_data": "corpus", "bundle": "bundle"},
    "plan": _TEXT,
    "import": {"model": "model"},
    "evaluate": {"targets": "bundle"},
    **{verb: {"bundle": "bundle"} for verb in ("translate", "inspect", "export")},
    **{verb: {"bundles": "bundle"} for verb in ("serve", "mcp")},
}
_NAME = re.compile(r"([^=/:]+=)?((?:opus|hf):(?!/).{1,300})")  # news=hf:OWNER/NAME is served as news
_ON_HUB = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[\w.-]{1,96}", re.ASCII)


def fetch_named(verb: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of a verb, with places on this machine for names. All names are looked up before one question is asked."""
    changed, offers = dict(given), cast("list[PublishedOffer]", [])
    if verb == "import":
        changed["model"] = _spell_out(given["model"], given["revision"])
    for param, kind in PLACES.get(verb, {}).items():
        if (value := changed.get(param)) is not None:
            several = value if isinstance(value, list) else [value]
            paths = [path for each in several for path in _replace(each, kind, offers)]
            changed[param] = paths if isinstance(value, list) else paths[0]
    if offers:
        _take({each.folder: each for each in offers}.values(), bool(given.get("yes")))
    return changed


def _spell_out(model: str, revision: str | None) -> str:
    """A model may be named without hf:, and its revision apart."""
    name = f"hf:{model}" if _ON_HUB.fullmatch(model) and not Path(model).exists() else model
    if revision is not None and not _NAME.fullmatch(name):
        raise ConfigError(f"--revision is for names on the hub, and {model} is not one; leave it out")
    return name if revision is None else f"{name}@{revision}"


def _replace(value: Any, kind: "Kind", offers: "list[PublishedOffer]") -> list[Any]:
    """What stands for a value: itself, or the places of what it names, which are there when the offers are taken."""
    text = value.as_posix() if isinstance(value, Path) else value
    found = _NAME.fullmatch(text) if isinstance(text, str) else None
    if found is None or Path(text).exists():
        return [value]
    paths, offer = _find(found[2], kind)
    offers += [] if offer is None else [offer]
    return [found[1] + ",".join(paths)] if found[1] else [type(value)(path) for path in paths]


def _find(name: str, kind: "Kind") -> "tuple[list[str], PublishedOffer | None]":
    if name.startswith("opus:"):
        from limelight.interop.opus import find_corpus

        if kind != "corpus":
            raise ConfigError(f"{name} is a corpus, and a translator is needed here; name one with hf:OWNER/NAME, or give a folder")
        return find_corpus(name)
    from limelight.interop.huggingface.hub import find_on_hub

    folder, offer = find_on_hub(name, kind)
    return [str(folder)], offer


def _take(offers: "Collection[PublishedOffer]", agreed: bool) -> None:
    from limelight.cli.screen import Screen

    lines = [each.describe() for each in offers]
    if not agreed:
        if not (sys.stdin and sys.stdin.isatty() and sys.stderr.isatty()):
            raise ConfigError("nothing was fetched, for there is no terminal to ask at; to agree add --yes:", lines)
        if not typer.confirm("\n".join([*lines, "Fetch?"]), err=True):
            raise ConfigError("nothing was fetched, as you said; give files and folders of this machine instead")
    else:
        typer.echo("\n".join(f"fetching {line}" for line in lines), err=True)
    for offer in offers:
        with Screen() as screen:
            offer.take(lambda done, total: screen.step("fetch", done, total))
