"""`limelight serve` loads translators and serves them over HTTP, with a page; it also makes keys."""

import gc
import json
import os
import signal
import sys
import tomllib
from contextlib import closing
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from limelight.cli.fetching import Yes
from limelight.cli.memory import open_named_store
from limelight.errors import ConfigError, MissingExtraError

if TYPE_CHECKING:
    from limelight.serving.queue.models import Models
    from limelight.serving.queue.served_model import ServedModel
    from limelight.serving.settings import ServeSettings

EXAMPLES = (
    "limelight serve en-de",
    "limelight serve en-de de-en --metrics --port 8080",
    "limelight serve en-de --store sqlite:///limelight.db --keep-days 90",
    "limelight serve --make-key forum --api-key-file keys.toml",
    "limelight serve en-de --host 0.0.0.0 --api-key-file keys.toml queue.wait_seconds=1",
)


def serve(
    bundles: Annotated[list[str] | None, typer.Argument(help="Folders of bundles or runs, or NAME=FOLDER; and section.key=value.")] = None,
    config: Annotated[Path | None, typer.Option("--config", help="Settings in a TOML file.")] = None,
    host: Annotated[str | None, typer.Option("--host", help="Address to listen on.", envvar="LIMELIGHT_HOST")] = None,
    port: Annotated[int | None, typer.Option("--port", help="0: any that is free.", envvar="LIMELIGHT_PORT")] = None,
    keys: Annotated[Path | None, typer.Option("--api-key-file", help="Ask for a key; it holds hashes.", envvar="LIMELIGHT_KEYS")] = None,
    make_key: Annotated[str | None, typer.Option("--make-key", metavar="NAME", help="Make a key, print it once, and end.")] = None,
    store: Annotated[str | None, typer.Option("--store", help="Database that remembers.", envvar="LIMELIGHT_STORE")] = None,
    keep_days: Annotated[float | None, typer.Option("--keep-days", help="How long the store keeps what people sent; 365.")] = None,
    forget_key: Annotated[str | None, typer.Option("--forget-key", metavar="NAME", help="Delete what a key sent, and end.")] = None,
    public: Annotated[bool, typer.Option("--public", help="Listen on other than loopback without asking for a key.")] = False,
    no_ui: Annotated[bool, typer.Option("--no-ui", help="No page, only the APIs.")] = False,
    metrics: Annotated[bool, typer.Option("--metrics", help="Prometheus metrics at /metrics.")] = False,
    threads: Annotated[int | None, typer.Option("--threads", help="Batches translated at once, one core each.")] = None,
    engine: Annotated[str | None, typer.Option("--engine", help="ctranslate2 or torch.")] = None,
    open_page: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
    yes: Yes = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output when it is ready.")] = False,
) -> None:  # fmt: skip
    """Serve translators: LibreTranslate- and DeepL-compatible APIs, an API of our own, and a page."""
    if make_key is not None:
        _make_key(make_key, keys)
        return
    if forget_key is not None:
        _forget_key(forget_key, store)
        return
    given = bundles or []
    places = [each for each in given if not is_setting(each)]
    asked = {"host": host, "port": port, "keys": keys, "threads": threads, "store": store, "keep_days": keep_days}
    asked |= {"public": public or None, "page": False if no_ui else None, "metrics": metrics or None}
    values = {name: value for name, value in asked.items() if value is not None}
    settings = _settings(config, values, [each for each in given if is_setting(each)])
    raise typer.Exit(_run(places, settings, engine, open_page, as_json))


def is_setting(written: str) -> bool:
    """files=false is a setting, queu.wait=1 and memori=use are mistyped ones; news=runs/en-de and v1.2=en-de, if there, are bundles."""
    from limelight.serving.settings import ServeSettings

    key, sign, value = written.partition("=")
    if not sign or Path(written).exists():
        return False
    names = ServeSettings.model_fields
    mistyped = "/" not in value and not Path(value).is_dir() and ("." in key or bool(get_close_matches(key, names)))
    return key.split(".")[0] in names or mistyped


def _settings(config: Path | None, values: dict[str, Any], written: list[str]) -> "ServeSettings":
    from limelight.cli.settings_arguments import put_settings
    from limelight.serving.settings import ServeSettings

    base = {} if config is None else _read(config)
    base.update(values)
    put_settings(base, written)
    if isinstance(base.get("hosts"), str):
        base["hosts"] = [name.strip() for name in base["hosts"].split(",")]
    try:
        return ServeSettings(**base)
    except ConfigError as error:
        if config is None:
            raise
        first, _, _ = str(error).partition("\n")
        raise ConfigError(f"{config} and the command line: {first}", error.problems) from None


def _read(path: Path) -> dict[str, Any]:
    """Not yet checked: the command line may hold the key file without which the host in the file would be refused."""
    try:
        return tomllib.loads(path.read_bytes().decode("utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"{path} does not exist; check the name, or leave it out to use the defaults") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not UTF-8 at byte {error.start}; save it as UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path} is not valid TOML: {error}") from None


def _make_key(name: str, path: Path | None) -> None:
    from limelight.serving.access.keys import Keys

    if path is None:
        raise ConfigError("a key is kept in a file, as a hash; say which with --api-key-file keys.toml")
    key = Keys.add_key(path, name)
    sys.stdout.write(key + "\n")
    typer.echo(f"the key of {name}, shown this once; {path} holds its hash, and limits can be set there", err=True)


def _forget_key(name: str, store: str | None) -> None:
    if store is None:
        raise ConfigError("what a key sent stands in a store; say which with --store")
    with closing(open_named_store(store)) as opened:
        if deleted := opened.delete_by_key(name):
            typer.echo(f"{deleted:,} corrections and glossaries of {name} are deleted", err=True)
        else:
            others = ", but of " + ", ".join(known) if (known := opened.list_keys()) else ""
            typer.echo(f"nothing was deleted: the store has nothing of {name}{others}", err=True)


def _run(places: list[str], settings: "ServeSettings", engine: str | None, open_page: bool, as_json: bool) -> int:
    gc.disable()  # until all is loaded: what is loaded stays, and looking through it again and again takes a twentieth of the start
    try:
        from limelight.serving.http.lifecycle import bind_socket
        from limelight.serving.http.lifecycle import serve as live
        from limelight.serving.queue.served_store import ServedStore
        from limelight.serving.server import Server
    except ModuleNotFoundError as error:
        raise MissingExtraError(error.name, "serving", "serve") from None
    from limelight.serving.access.keys import Keys
    from limelight.serving.middleware.logs import json_lines, take_over
    from limelight.serving.middleware.otel import OtelTracing
    from limelight.serving.queue.models import load

    # The first process of a container has no defaults for signals: without this it could not be stopped while it loads.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    # Loading takes a while: what can be told before is.
    if settings.keys is not None:
        Keys.load(settings.keys)
    bind_socket(settings.host, settings.port).close()
    store = None if settings.store is None else ServedStore(open_named_store(settings.store, create=True))
    if places:
        typer.echo(f"loading {', '.join(places)}", err=True)
    models = load(places, settings.threads, engine)
    _warn_of(models)
    log, tracing = json_lines(sys.stderr.buffer), OtelTracing.from_environment(os.environ)
    server = Server.of(models, settings, log, tracing, store)

    def started(address: str) -> None:
        server.read_ahead()
        if as_json:
            facts = {"address": address, "models": [each.id for each in models.all]}
            sys.stdout.write(json.dumps(facts, ensure_ascii=False) + "\n")
            sys.stdout.flush()
        else:
            typer.echo("\n".join(_hello(models, settings, address)), err=True)
        if open_page:
            typer.launch(address)

    undo = take_over(log)
    try:
        return live(server.app, settings, server.service, started=started)
    finally:
        server.service.close()
        undo()
        if store is not None:
            store.close()
        if tracing is not None:
            tracing.close()


def _warn_of(models: "Models") -> None:
    """Say which translators nobody should use: clients get what they write, without a word."""
    from limelight.bundle.card import find_warning

    for each in models.all:
        if (verdict := find_warning(each.translator.settings)) is not None:
            typer.echo(f"warning: {each.id} was judged when it was trained: {verdict}", err=True)


def _list_directions(served: "ServedModel") -> str:
    """en to de; of a model that has more: en to de, fr; de to en; tags formal, ui."""
    most = 8 if len(served.targets) <= 8 else 2  # of 200 languages a line is enough
    ways = [f"{source} to {', '.join(targets[:8])}{' ...' if targets[8:] else ''}" for source, targets in served.targets.items()]
    more = [f"from {len(ways) - most} other languages"] if ways[most:] else []
    tags = [f"tags {', '.join(served.tags)}"] if served.tags else []
    return "; ".join([*ways[:most], *more, *tags])


def _hello(models: "Models", settings: "ServeSettings", address: str) -> list[str]:
    lines = []
    for each in models.all:
        size = each.translator.settings.model
        lines.append(
            f" {each.id:<12} {_list_directions(each)}   {size.encoder_layers}+{size.decoder_layers} layers, {size.d_model} wide   "
            f"{', '.join(each.translator.runs_on)}   about {each.speed * each.translator.engine.workers:,.0f} pieces/s"
        )
    if settings.page:
        from limelight.serving.desk.page import is_built

        built = is_built()
        lines.append(f" page         {address}/" if built else " page         not built: `make web` makes it")
        lines += [f" desk         {address}/desk"] if built and settings.desk.on else []
    lines.append(f" APIs         {address}/translate (LibreTranslate)   {address}/v2/translate (DeepL)   {address}/api/v1/translate")
    if settings.store:
        kept = f"corrections for {settings.keep_days:g} days, glossaries until they are not used for 30"
        used = "" if settings.memory is None else f", and answers whoever asks (memory={settings.memory})"
        lines.append(f" store        keeps {kept}; its memory can be asked by everybody who may translate{used}")
        if several := [each.id for each in models.all if len(each.translator.settings.directions) > 1]:
            unused = f"`limelight learn` cannot use corrections of several directions ({', '.join(several)})"
            lines.append(f" store        {unused}; its --export writes them for `limelight train`")
        if settings.memory == "tell" and (untaught := [each.id for each in models.all if not each.translator.settings.takes_matches]):
            lines.append(f" store        {', '.join(untaught)} cannot be told similar texts, only the same text is used: not taught it")
    if settings.metrics:
        lines.append(f" metrics      {address}/metrics")
    asks = f"asks for a key ({settings.keys})" if settings.keys else "asks for no key"
    reach = "other machines can reach it" if settings.wide else "on this machine only; --host 0.0.0.0 needs --api-key-file or --public"
    lines.append(f" {asks}; {reach}; Ctrl-C to stop")
    return lines
