"""An engine is chosen for a bundle, with the reason, and another one for what the first cannot do."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

import torch

from limelight.bundle import Bundle
from limelight.bundle.layout import EXPORT
from limelight.decoding.steps import Specials
from limelight.engines.ctranslate2 import CTranslate2Engine, computes_in
from limelight.engines.engine import Engine
from limelight.engines.torch import TorchEngine
from limelight.errors import ConfigError, ModelFileError, RuntimeChoiceError
from limelight.runtime import RuntimeChoice, choose_device, choose_dtype, count_threads
from limelight.text.careful.glossary import Glossary

EngineName = Literal["torch", "ctranslate2"]
GLOSSARY = "glossary.tsv"  # in the folder of a bundle: a person's own file, to be edited at any time, so the manifest does not know it


@dataclass(frozen=True)
class Engines:
    """Engines run a bundle. `spare` loads the torch engine, for what the first lacks; None when the engine was asked for by name."""

    first: Engine
    spare: Callable[[], Engine] | None
    runs_on: tuple[str, ...]  # for people: what was decided, and why


def open_engines(
    bundle: Bundle, device: str | None, dtype: str | None, threads: int | None, engine: str | None
) -> Engines:
    """CTranslate2 where the bundle has been exported for it, else torch."""
    if engine is not None and engine not in get_args(EngineName):
        raise ConfigError(f"there is no engine {engine!r}; the engines are {' and '.join(get_args(EngineName))}")
    on, cores = choose_device(device), count_threads(threads)
    workers = cores.value if on.value.type == "cpu" else 1
    exported = (bundle.folder / EXPORT / "model.bin").is_file()
    if engine == "ctranslate2" and not exported:
        raise ConfigError(
            f"{bundle.folder} has no export for CTranslate2; make it with limelight export {bundle.folder}"
        )
    known = computes_in(on.value.type)
    runs_there = bool(known) and dtype in (None, *known)
    if engine == "ctranslate2" and not runs_there:
        raise RuntimeChoiceError(
            f"CTranslate2 does not run on {on.value.type} in {dtype or 'any numbers'} here; it has "
            f"{', '.join(sorted(known)) or 'nothing for this device'}: change --device or --dtype, or use the engine torch"
        )
    if engine == "torch" or not exported or not runs_there:
        return _torch(bundle, on, dtype, cores, workers)
    try:
        fast = CTranslate2Engine(
            bundle.folder / EXPORT,
            (bundle.source_tokenizer.vocabulary, bundle.target_tokenizer.vocabulary),
            specials(bundle),
            bundle.settings.model.max_length - 1,
            on.value.type,
            dtype or "default",
            workers,
            on.value.index or 0,
        )
    except ModelFileError as error:
        if engine is not None or on.value.type == "cpu":
            raise
        # Built for another version of the accelerator's libraries, as happens; torch runs there.
        found = _torch(bundle, on, dtype, cores, workers)
        return Engines(found.first, None, (*found.runs_on, str(error)))
    spare = None if engine else (lambda: _torch(bundle, on, None, cores, workers).first)
    return Engines(fast, spare, (fast.name, str(on), fast.numbers, f"threads {cores}"))


def _torch(
    bundle: Bundle, on: RuntimeChoice[torch.device], dtype: str | None, cores: RuntimeChoice[int], workers: int
) -> Engines:
    numbers = choose_dtype(on.value, dtype)
    if on.value.type == "cpu" and dtype is None:
        numbers = RuntimeChoice(torch.float32, "exact enough that no translation depends on its batch")
    model = bundle.load_model(numbers.value, on.value)
    engine = TorchEngine(model, specials(bundle), bundle.settings.alignment, workers)
    return Engines(engine, None, (engine.name, str(on), str(numbers), f"threads {cores}"))


def specials(bundle: Bundle) -> Specials:
    config = bundle.settings.model
    unknown, ends = bundle.target_tokenizer.unknown, bundle.settings.source_ends
    return Specials(config.pad_token, unknown, config.start_token, config.end_token, ends)


def load_glossary(bundle: Bundle) -> Glossary | None:
    terms = bundle.folder / GLOSSARY
    if terms.is_symlink():  # of a bundle that a stranger made, it might lead anywhere
        raise ModelFileError(f"{terms} is a link, and links are not followed; put the glossary itself there")
    return Glossary.load(terms, bundle.settings.languages) if terms.is_file() else None
