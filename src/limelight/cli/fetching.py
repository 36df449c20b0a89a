"""Corpora and models that are named, as opus:CORPUS/de-en or hf:OWNER/NAME, are fetched after a person agreed to address, size, licence."""

import os
import re
import sys
from collections.abc import Collection, Mapping
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import typer

from limelight.errors import ConfigError

if TYPE_CHECKING:
    from limelight.interop.huggingface.hub import Kind as HubKind
    from limelight.interop.offers import PublishedOffer

    Kind = HubKind | Literal["lines", "source", "target"]  # files of lines: of a corpus both sides, or one

Yes = Annotated[bool, typer.Option("--yes", help="Fetch what opus: and hf: name, and do not ask.")]
_HELD_OUT: "dict[str, Kind]" = dict.fromkeys(("valid", "test"), "corpus")
_TEXT: "dict[str, Kind]" = {**_HELD_OUT, "inputs": "corpus", "pair": "corpus"}
_SIDES = {"lines": slice(None), "source": slice(1), "target": slice(1, None)}
# What may be named so, by verb and parameter. All else that is given, texts above all, is what it is.
PLACES: "dict[str, dict[str, Kind]]" = {
    "prepare": _TEXT,
    "train": {**_TEXT, "replay_data": "corpus", "mono": "target", "bundle": "bundle"},
    "plan": _TEXT,
    "distill": {"teachers": "bundle", "text": "source", **dict.fromkeys(("references", "translations"), "target"), **_HELD_OUT},
    "learn": {"test": "lines", "replay_data": "corpus"},
    "memory": {"given": "corpus"},
    "import": {"model": "model"},
    "evaluate": {"targets": "lines", "source": "source", "reference": "target", "compare": "bundle"},
    **{verb: {"bundle": "bundle"} for verb in ("translate", "inspect", "export")},
    **{verb: {"bundles": "bundle"} for verb in ("serve", "mcp")},
}
_NAME = re.compile(r"([^=/:]+=)?((?:opus|hf):(?!/).{1,300})")  # news=hf:OWNER/NAME is served as news
# What may be named inside a recipe, or on the command line as section.key=value.
_KEYS: "dict[str, Kind]" = {
    **dict.fromkeys(("data.corpora", "data.held_out.valid", "data.held_out.test", "data.held_out.pairs"), "corpus"),
    "fine_tuning.bundle": "bundle",
}
_SETTINGS = {"prepare": "inputs", "train": "inputs", "plan": "inputs", "distill": "teachers", "learn": "inputs"}
_ON_HUB = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[\w.-]{1,96}", re.ASCII)


def fetch_named(verb: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of a verb, with places on this machine for names. All names are looked up before one question is asked."""
    changed, offers = dict(given), cast("list[PublishedOffer]", [])
    if verb == "import":
        changed["model"] = _spell_out(given["model"], given["revision"])
    for param, kind in PLACES.get(verb, {}).items():
        value = changed.get(param)
        if not value or (verb == "memory" and changed["action"].value != "add"):  # a text that is looked for is a text
            continue
        several, written = value if isinstance(value, list) else [value], param == _SETTINGS.get(verb)
        kinds: list[Kind] = [kind] * len(several)
        if param == "targets":  # a translator and both sides of its test set, or a file of translations and its reference
            later: Kind = "target" if os.path.isfile(several[0]) else kind  # noqa: PTH113, for Path fails at a long one
            kinds = ["bundle", *[later] * len(several)][: len(several)]
        paths = [path for each, of in zip(several, kinds, strict=True) for path in _replace(each, of, offers, not written)]
        changed[param] = paths if isinstance(value, list) else paths[0]
    if (param := _SETTINGS.get(verb, "")) and (places := _replace_inside(verb, changed, offers)):
        changed[param] = [*(changed[param] or ()), *places]
    if offers:
        _take({each.folder: each for each in offers}.values(), bool(given.get("yes")))
    return changed


def _spell_out(model: str, revision: str | None) -> str:
    """A model may be named without hf:, and its revision apart."""
    name = f"hf:{model}" if _ON_HUB.fullmatch(model) and not Path(model).exists() else model
    if revision is not None and not _NAME.fullmatch(name):
        raise ConfigError(f"--revision is for names on the hub, and {model} is not one; leave it out")
    return name if revision is None else f"{name}@{revision}"


def _replace(value: Any, kind: "Kind", offers: "list[PublishedOffer]", prefixed: bool = False) -> list[Any]:
    """What stands for a value: itself, or the places of what it names, which are there when the offers are taken."""
    text = value.as_posix() if isinstance(value, Path) else value
    found = _NAME.fullmatch(text) if isinstance(text, str) else None
    if found is None or (found[1] and not prefixed) or os.path.exists(text):  # noqa: PTH110, for Path fails at a long one
        return [value]
    paths, offer = _find(found[2], kind)
    offers += [] if offer is None else [offer]
    return [found[1] + ",".join(paths)] if found[1] else [type(value)(path) for path in paths]


def _replace_inside(verb: str, given: Mapping[str, Any], offers: "list[PublishedOffer]") -> list[str]:
    """Further section.key=value, with places for the names in a recipe, in a file of settings, or in what was written so before them."""
    inputs = given.get(_SETTINGS[verb]) or []
    recipes = [each for each in inputs if each.endswith(".toml")]
    files = [Path(each) for each in [*recipes, given.get("config")] if each and Path(each).is_file()]
    written = [*map(os.fsencode, inputs), *(file.read_bytes() for file in files)]
    if not any(name in text for text in written for name in (b"opus:", b"hf:")):
        return []
    import tomlkit

    from limelight.cli.settings_arguments import put_settings, read_toml, split_settings

    before, values = "data." if verb == "prepare" else "", dict[str, Any]()
    for file in files:
        values |= read_toml(file)
    paths, settings = split_settings(inputs)
    if verb == "prepare" and (paths or given.get("pair")):
        values.pop("corpora", None)  # those of the command line are taken instead
    put_settings(values, settings)
    told = []
    for key, kind in _KEYS.items():
        if given.get(key.removeprefix("data.held_out.")):  # --valid, --test
            continue
        value: Any = values
        for name in key.removeprefix(before).split("."):
            value = value.get(name) if isinstance(value, dict) else None
        if (placed := _replace_within(value, kind, offers)) != value:
            told.append(f"{key.removeprefix(before)}={tomlkit.inline_table().append('it', placed)['it'].as_string()}")
    return told


def _replace_within(value: Any, kind: "Kind", offers: "list[PublishedOffer]") -> Any:
    """Names may stand alone, in a list, and in the `paths` of what a list holds."""
    if isinstance(value, dict):
        return {**value, "paths": _replace_within(value["paths"], kind, offers)} if "paths" in value else value
    if isinstance(value, list):
        several = [_replace(each, kind, offers) if isinstance(each, str) else [_replace_within(each, kind, offers)] for each in value]
        return list(chain.from_iterable(several))
    return _replace(value, kind, offers)[0] if kind == "bundle" else value


def _find(name: str, kind: "Kind") -> "tuple[list[str], PublishedOffer | None]":
    if name.startswith("opus:"):
        from limelight.interop.opus import find_corpus

        if kind in ("bundle", "model"):
            raise ConfigError(f"{name} is a corpus, and a translator is needed here; name one with hf:OWNER/NAME, or give a folder")
        files, offer = find_corpus(name)
        return files[_SIDES.get(kind, slice(None))], offer
    from limelight.interop.huggingface.hub import find_on_hub

    if kind == "corpus" or kind == "bundle" or kind == "model":
        folder, offer = find_on_hub(name, kind)
        return [str(folder)], offer
    inside = "/".join(name.partition("@")[0].rstrip("/").split("/", 2)[2:])
    if inside and "*" not in inside:
        folder, offer = find_on_hub(name, "corpus")
        if inside in offer.files if offer else (folder / inside).is_file():
            return [str(folder / inside)], offer
    raise ConfigError(f"{name}: a file of lines is needed here; name it as hf:OWNER/NAME/FILE, or give opus:CORPUS/SOURCE-TARGET")


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
