"""An engine is chosen for a bundle, with the reason, and another one for what the first cannot do."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, get_args

from limelight.addresses.object_store import is_address
from limelight.bundle import Bundle
from limelight.bundle.bundle import read
from limelight.bundle.layout import EXPORT, GLOSSARY
from limelight.bundle.remote import fetch_bundle
from limelight.bundle.versions import find_original
from limelight.decoding.steps import Specials
from limelight.engines.ctranslate2 import CTranslate2Engine, computes_in, count_accelerators
from limelight.engines.engine import Engine
from limelight.errors import ConfigError, MissingExtraError, ModelFileError, RuntimeChoiceError
from limelight.runtime import RuntimeChoice, choose_device, choose_dtype, count_threads
from limelight.text.careful.glossary import Glossary

EngineName = Literal["torch", "ctranslate2"]


@dataclass(frozen=True)
class Engines:
    """Engines run a bundle. `spare` loads the engine for what the first lacks; None when the engine was asked for by name."""

    first: Engine
    spare: Callable[[], Engine] | None
    runs_on: tuple[str, ...]  # for people: what was decided, and why


def read_bundle(place: Path | str) -> Bundle:
    """The bundle of a folder, of a run, or of an address such as s3://models/en-de, from where it is fetched. Its weights are not read."""
    if isinstance(place, str) and is_address(place):
        place = fetch_bundle(place)
    return read(Path(place), weights=False)


def open_engines(bundle: Bundle, device: str | None, dtype: str | None, threads: int | None, engine: str | None) -> Engines:
    """CTranslate2 where the bundle has been exported for it, else torch."""
    if engine is not None and engine not in get_args(EngineName):
        raise ConfigError(f"there is no engine {engine!r}; the engines are {' and '.join(get_args(EngineName))}")
    exported = (bundle.folder / EXPORT / "model.bin").is_file()
    if engine == "ctranslate2" and not exported:
        raise ConfigError(f"{bundle.folder} has no export for CTranslate2; make it with limelight export {bundle.folder}")
    if engine == "torch" and not has_torch():  # an export would not help whoever looks inside
        raise MissingExtraError("torch", f"the engine torch of {bundle.folder}", "desk")
    cores = count_threads(threads)
    if engine == "torch" or not exported:
        return _torch(bundle, device, dtype, cores)
    on = _choose_fast_device(device)
    known = computes_in(on.value.kind)
    if not known or dtype not in (None, *known):
        if engine == "ctranslate2":
            raise RuntimeChoiceError(
                f"CTranslate2 does not run on {on.value.kind} in {dtype or 'any numbers'} here; it has "
                f"{', '.join(sorted(known)) or 'nothing for this device'}: change --device or --dtype, or use the engine torch"
            )
        return _torch(bundle, device, dtype, cores)
    try:
        fast = CTranslate2Engine(
            bundle.folder / EXPORT,
            (bundle.source_tokenizer.vocabulary, bundle.target_tokenizer.vocabulary),
            specials(bundle),
            bundle.settings.model.max_length - 1,
            on.value.kind,
            dtype or "default",
            cores.value if on.value.kind == "cpu" else 1,
            on.value.index,
        )
    except ModelFileError as error:
        if engine is not None or on.value.kind == "cpu":
            raise
        # Built for another version of the accelerator's libraries, as happens; torch runs there.
        found = _torch(bundle, device, dtype, cores)
        return Engines(found.first, None, (*found.runs_on, str(error)))
    spare = None if engine else (lambda: _load_spare(bundle, fast, device, cores))
    return Engines(fast, spare, (fast.name, str(on), fast.numbers, f"threads {cores}"))


@dataclass(frozen=True)
class FastDevice:
    """A device by the names that CTranslate2 has for it."""

    kind: str
    index: int = 0

    def __str__(self) -> str:
        return self.kind if self.kind == "cpu" else f"{self.kind}:{self.index}"


def _choose_fast_device(asked: str | None) -> RuntimeChoice[FastDevice]:
    if asked is not None:
        kind, _, index = asked.partition(":")
        return RuntimeChoice(FastDevice(kind, int(index) if index.isdecimal() else 0), "asked for")
    if count_accelerators():
        return RuntimeChoice(FastDevice("cuda"), "the accelerator that CTranslate2 sees")
    return RuntimeChoice(FastDevice("cpu"), "CTranslate2 sees no accelerator")


def _load_spare(bundle: Bundle, fast: CTranslate2Engine, device: str | None, cores: RuntimeChoice[int]) -> Engine:
    """Torch where it is installed, for it remembers what it has computed; else the engine that steps."""
    if has_torch():
        return _torch(bundle, device, None, cores).first
    from limelight.engines.stepping import SteppingEngine

    return SteppingEngine(fast)


def has_torch() -> bool:
    return find_spec("torch") is not None


def _torch(bundle: Bundle, device: str | None, dtype: str | None, cores: RuntimeChoice[int]) -> Engines:
    if not has_torch() and (bundle.folder / EXPORT).exists():
        raise MissingExtraError("torch", f"the engine torch of {bundle.folder}", "desk")
    if not has_torch():
        raise RuntimeChoiceError(
            f"{bundle.folder} has nothing that runs here without torch; pip install 'limelight[train]', or export it for CTranslate2 on a "
            f"machine that has torch: limelight export {bundle.folder}"
        )
    import torch

    from limelight.engines.torch import TorchEngine

    on = choose_device(device)
    numbers = choose_dtype(on.value, dtype)
    if on.value.type == "cpu" and dtype is None:
        numbers = RuntimeChoice(torch.float32, "exact enough that no translation depends on its batch")
    model = bundle.load_model(numbers.value, on.value)
    workers = cores.value if on.value.type == "cpu" else 1
    engine = TorchEngine(model, specials(bundle), bundle.settings.alignment, workers)
    return Engines(engine, None, (engine.name, str(on), str(numbers), f"threads {cores}"))


def specials(bundle: Bundle) -> Specials:
    config = bundle.settings.model
    unknown, ends = bundle.target_tokenizer.unknown, bundle.settings.source_ends
    return Specials(config.pad_token, unknown, config.start_token, config.end_token, ends)


def load_glossary(bundle: Bundle) -> Glossary | None:
    """Its own; of a version that was learnt, which has none, that of the translator which learnt it."""
    places = (bundle.folder, *find_original(bundle.folder))
    terms = next((place / GLOSSARY for place in places if (place / GLOSSARY).exists()), bundle.folder / GLOSSARY)
    if terms.is_symlink():  # of a bundle that a stranger made, it might lead anywhere
        raise ModelFileError(f"{terms} is a link, and links are not followed; put the glossary itself there")
    return Glossary.load(terms, bundle.settings.languages) if terms.is_file() else None
