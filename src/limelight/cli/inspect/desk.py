"""The lighting desk is served for one translator and opened at an address with all choices in it. It runs in the foreground."""

import os
import shutil
import sys
import webbrowser
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import typer

from limelight.errors import MissingExtraError

if TYPE_CHECKING:
    from limelight.inspection.interventions import Changes

PORT = 5000


def desk_view(
    text: str,
    changes: "Changes | None" = None,
    head: str | None = None,
    target: str | None = None,
    prefix: Sequence[int] = (),
    beam: int | None = None,
) -> str:
    """What the page reads from its address: desk_view("twenty-one", head="cross.1.2") -> "#/x?s=twenty-one&l=1&h=2\""""
    said = {"s": text, "y": target or "", "b": "" if beam is None else str(beam), "pre": ",".join(map(str, prefix))}
    if head is not None:
        kind, layer, number = head.split(".")
        said |= {"k": kind, "l": layer, "h": number} if kind != "cross" else {"l": layer, "h": number}
    if changes is not None:
        gates = [_short(name) + (f":{gate:g}" if gate else "") for name, gate in changes.gates.items()]
        said["off"] = ",".join(gates)
        said["hide"] = ",".join(map(str, changes.mask_source))
        said["ex"] = changes.positions if changes.positions != "normal" else ""
        said["at"] = f"{changes.attention_temperature:g}" if changes.attention_temperature != 1 else ""
        said["gm"] = changes.gate_mode if changes.gate_mode != "zero" else ""
    return "#/x?" + "&".join(f"{key}={quote(value, safe=',:*-')}" for key, value in said.items() if value)


def open_desk(bundle: Path, view: str, port: int | None, threads: int | None, browse: bool, say: Callable[[str], None]) -> int:
    try:
        from limelight.serving.http.lifecycle import bind_socket
        from limelight.serving.http.lifecycle import serve as live
        from limelight.serving.middleware.logs import json_lines, take_over
        from limelight.serving.queue.models import load
        from limelight.serving.server import Server
        from limelight.serving.settings import ServeSettings
    except ModuleNotFoundError as error:
        raise MissingExtraError(error.name, "the desk", "desk", ", or write a file with --html") from None
    settings = ServeSettings(port=PORT if port is None else port, threads=threads)
    bind_socket(settings.host, settings.port).close()  # loading takes a while: a port that is taken is told before
    models = load([str(bundle)], threads, "torch")

    def started(address: str) -> None:
        say(f"the desk   {address}/{view}")
        say("Ctrl-C to stop")
        if browse and has_display():
            webbrowser.open_new_tab(f"{address}/{view}")

    with Path(os.devnull).open("wb") as nowhere:  # one person looks, and needs no log of it
        log = json_lines(nowhere)
        server, undo = Server.of(models, settings, log), take_over(log)
        try:
            return live(server.app, settings, server.service, started=started)
        finally:
            server.service.close()
            undo()


def has_display() -> bool:
    """Is there a screen that a browser could open on? Over ssh, in a container and in a pipe there is none."""
    if sys.platform in ("darwin", "win32"):
        return "SSH_CONNECTION" not in os.environ
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")) and shutil.which("xdg-open") is not None


def say(line: str) -> None:
    typer.echo(f" {line}", err=True)


def _short(pattern: str) -> str:
    """cross.5.2 -> c5.2"""
    kind, _, rest = pattern.partition(".")
    return kind if kind == "*" else f"{kind[0]}{rest}"
