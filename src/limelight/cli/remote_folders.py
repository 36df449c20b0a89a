"""Options and arguments that name a folder may name an address, where the verb can: it is then given a folder of this machine."""

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, Final

import typer

from limelight.errors import ConfigError

BUNDLES: Final = {"evaluate": "targets", "inspect": "bundle", "mcp": "bundles", "serve": "bundles", "translate": "bundle"}
OUTPUTS: Final = ("import", "prepare", "train")


def takes_address(verb: str, params: dict[str, Any], name: str, given: Any, number: int = 0) -> bool:
    """Does `local_folders` make a folder of this, the value of a parameter, or one of its values?"""
    if name == "output":
        return verb in OUTPUTS and _is_remote(_restore_slashes(given))
    return (
        name == BUNDLES.get(verb) and not params.get("calibrate") and (number == 0 or verb != "evaluate") and _is_remote(_split(given)[1])
    )


@contextmanager
def local_folders(verb: str, params: dict[str, Any]) -> Iterator[None]:
    """Changes what was given to the verb, and publishes what it wrote."""
    if name := BUNDLES.get(verb):
        given = params.get(name)
        several = given if isinstance(given, list | tuple) else [given] if given else []
        local = [_fetch(each) if takes_address(verb, params, name, each, number) else each for number, each in enumerate(several)]
        params[name] = local if isinstance(given, list | tuple) else local[0] if given else given
    output = params.get("output")
    remote = output is not None and takes_address(verb, params, "output", output)
    with _place(verb, _restore_slashes(output), params) if remote else nullcontext(output) as folder:
        if "output" in params:
            params["output"] = folder
        yield


def _is_remote(place: str) -> bool:
    """Most are folders: for these nothing is loaded."""
    if ":" not in place:
        return False
    from limelight.addresses.object_store import is_address

    return is_address(place)


def _restore_slashes(given: Any) -> str:
    return re.sub("^s3:/+", "s3://", given.as_posix() if isinstance(given, Path) else given)  # a path swallows one of two


def _split(given: Any) -> tuple[str, str]:
    """news=s3://models/en-de -> ("news=", "s3://models/en-de")"""
    found = re.fullmatch(r"(?s)((?:[^=/:]+=)?)(.*)", _restore_slashes(given))
    assert found is not None  # whatever is given fits
    return found[1], _restore_slashes(found[2])


def _fetch(given: Any) -> Any:
    from limelight.bundle.remote import fetch_bundle

    name, address = _split(given)
    return type(given)(f"{name}{fetch_bundle(address)}")


@contextmanager
def _place(verb: str, address: str, params: dict[str, Any]) -> Iterator[Path]:
    """A folder to write to, as the address has it already, if it does; what is in it afterwards is published, by a run itself."""
    if verb == "train":
        from limelight.training.run.mirror import place_run

        yield place_run(address)
        return
    from limelight.addresses.folders import MANIFEST, find_cache, lock, name_copy, publish
    from limelight.addresses.object_store import ObjectStore
    from limelight.addresses.snapshots import FOLDER as SNAPSHOTS

    store = ObjectStore(address)
    if next(store.names(SNAPSHOTS), None) is not None:
        raise ConfigError(f"{address} holds a run; name another address")
    place = find_cache(verb, store.address)
    folder = place / name_copy(address)
    with lock(place, wait=False):
        if verb == "prepare":
            from limelight.corpus.remote import fetch_prepared, list_prepared

            if not params.get("force") and not params.get("check_only"):  # what was made and could not be published stays
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
            publish_bundle(folder, address, bool(params.get("force")))
    if not params.get("check_only"):
        typer.echo(f"published at {address}", err=True)
