"""Options and arguments that name a folder may name an address, where the verb can: it is then given a folder of this machine.

    translate, inspect, serve, mcp, evaluate    the bundle is fetched first
    prepare, import                             the folder is published when it is done
    train                                       the run works in a folder, and its snapshots are at the address

Every other address stays where it is, and is refused.
"""

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, Final

import typer

from limelight.addresses.folders import MANIFEST, find_cache, lock, name_copy, publish
from limelight.addresses.object_store import ObjectStore, is_address
from limelight.errors import ConfigError

BUNDLES: Final = {"evaluate": "targets", "inspect": "bundle", "mcp": "bundles", "serve": "bundles", "translate": "bundle"}
OUTPUTS: Final = ("import", "prepare", "train")


@contextmanager
def local_folders(verb: str, params: dict[str, Any]) -> Iterator[None]:
    """Changes what was given to the verb, and publishes what it wrote."""
    name, output = BUNDLES.get(verb, ""), _restore_slashes(params.get("output") or "")
    if name and not params.get("calibrate"):
        params[name] = _fetch_all(verb, params.get(name))
    with _place(verb, output, params) if verb in OUTPUTS and is_address(output) else nullcontext(params.get("output")) as folder:
        if "output" in params:
            params["output"] = folder
        yield


def _restore_slashes(given: Any) -> str:
    return re.sub("^s3:/+", "s3://", str(given))  # a path swallows one of two


def _fetch_all(verb: str, given: Any) -> Any:
    """Bundles by name, or NAME=ADDRESS, or one; of `evaluate` the first is one, and the others are texts."""
    if not isinstance(given, list | tuple):
        return given and Path(_fetch(str(given)))
    return [_fetch(each) if number == 0 or verb != "evaluate" else each for number, each in enumerate(given)]


def _fetch(given: str) -> str:
    name, address = re.fullmatch(r"(?s)((?:[^=/:]+=)?)(.*)", given).groups()  # type: ignore[union-attr]
    if not is_address(address := _restore_slashes(address)):
        return given
    from limelight.bundle.remote import fetch_bundle

    return f"{name}{fetch_bundle(address)}"


@contextmanager
def _place(verb: str, address: str, params: dict[str, Any]) -> Iterator[Path]:
    """A folder to write to, as the address has it already, if it does; what is in it afterwards is published, by a run itself."""
    if verb == "train":
        from limelight.training.run.mirror import place_run

        yield place_run(address)
        return
    store = ObjectStore(address)
    place = find_cache(verb, store.address)
    folder = place / name_copy(address)
    with lock(place, wait=False):
        if verb == "prepare":
            from limelight.corpus.remote import fetch_prepared, list_prepared

            fetch_prepared(store, folder)
            yield folder
            if not params.get("check_only"):
                publish(store, folder, list_prepared(folder), bool(params.get("force")))
        else:
            from limelight.bundle.remote import publish_bundle

            if store.get(MANIFEST) is not None and not params.get("force"):
                raise ConfigError(f"{address} holds something already; name another address, or --force to replace it")
            shutil.rmtree(folder, ignore_errors=True)
            yield folder
            publish_bundle(folder, address, force=True)
    if not params.get("check_only"):
        typer.echo(f"published at {address}", err=True)
