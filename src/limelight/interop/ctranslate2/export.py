"""A bundle is exported for CTranslate2, compared with our own engine, and kept only if it translates the same.

bundle/ctranslate2/   model.bin config.json shared_vocabulary.json   what the engine reads; any program that has the engine can
                      parity.json                                    how it was compared, and how close it came
"""

import json
import secrets
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import ctranslate2
from pydantic import Field
from torch import Tensor

from limelight.bundle import Bundle, read, relist
from limelight.bundle.bundle import link_or_copy
from limelight.bundle.layout import CONFIG, EXPORT
from limelight.decoding.steps import Specials
from limelight.engines.ctranslate2 import CTranslate2Engine
from limelight.engines.torch import TorchEngine, usual_heads
from limelight.errors import ConfigError, ModelFileError
from limelight.files import force_to_disk, put_folder
from limelight.interop.alignment_heads import best_heads
from limelight.interop.ctranslate2.spec import lacks, spec_of
from limelight.interop.parity import GIVEN, VALIDATION, Parity, compare, probe_texts
from limelight.model.config import ModelConfig
from limelight.translator.loading import specials
from limelight.translator.translate import Translator

QUANTIZE = ("float32", "bfloat16", "float16", "int8", "int8_float32", "int8_bfloat16", "int8_float16")
FILE, MEASURED = "parity.json", "measured"


class ExportParity(Parity):
    """Export parity says what the export is, beside how close it came. Written as parity.json."""

    quantize: str
    version: str = Field(description="Of CTranslate2.")
    alignment: tuple[tuple[int, int], ...] = Field(description="Layer and head, as our model counts them.")
    alignment_from: str = Field(description="Where these heads come from.")
    bytes: int = Field(description="Of model.bin.")


def export(
    bundle: Bundle, quantize: str = "float32", texts: Sequence[str] | None = None, into: Path | None = None
) -> ExportParity:
    """Write `ctranslate2/` into the bundle, or only the engine's files `into` a new folder. Refused when it translates otherwise.

    `texts`: sentences of the source to compare with; by default of the validation set of the bundle's run.
    """
    if quantize not in QUANTIZE:
        raise ConfigError(f"CTranslate2 has no weights in {quantize!r}; choose one of {', '.join(QUANTIZE)}")
    if missing := lacks(bundle.settings.model):
        raise ConfigError(f"CTranslate2 cannot run the model of {bundle.folder}:", missing)
    if into is not None and into.exists():
        raise ModelFileError(f"{into} exists already; give another name")
    target = into.resolve() if into is not None else bundle.folder.resolve()
    beside = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    try:
        if into is None:
            shutil.copytree(
                target, beside, copy_function=link_or_copy, ignore=shutil.ignore_patterns(EXPORT.rstrip("/"))
            )
        folder = beside / EXPORT if into is None else beside
        folder.mkdir(parents=True)
        made = _convert(bundle, folder, quantize, texts)
        (folder / FILE).write_bytes(made.model_dump_json(indent=1).encode() + b"\n")
        if into is None:
            _name_heads(beside, bundle, made)
            relist(beside)
            read(beside)
        for path in (*beside.rglob("*"), beside):
            force_to_disk(path)
        put_folder(beside, target)
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return made


def _name_heads(folder: Path, bundle: Bundle, made: ExportParity) -> None:
    """Measured heads go into the bundle's settings, so that both engines align alike."""
    if bundle.settings.alignment is None and made.alignment_from.startswith(MEASURED):
        (
            folder / CONFIG
        ).unlink()  # a link to the old one, which must stay as it is until the new folder takes its place
        (folder / CONFIG).write_bytes(bundle.settings.changed(alignment=made.alignment).encode())


def _convert(bundle: Bundle, folder: Path, quantize: str, texts: Sequence[str] | None) -> ExportParity:
    model = bundle.load_model()
    ours = TorchEngine(model, specials(bundle), bundle.settings.alignment)
    probes, probe = probe_texts(bundle, texts)
    alignment, measured = _alignment(bundle, ours, probes, probe)
    vocabularies = (bundle.source_tokenizer.vocabulary, bundle.target_tokenizer.vocabulary)
    save(model.config, model.state_dict(), vocabularies, specials(bundle), alignment, folder, quantize)
    other = CTranslate2Engine(folder, vocabularies, specials(bundle), model.config.max_length - 1)
    parity = compare(bundle, ours, other, quantize, probes, probe)
    other.close()
    if problems := parity.problems():
        raise ModelFileError(
            "\n".join(
                [
                    f"the export of {bundle.folder} does not translate as the bundle does, and was not kept:",
                    *(f"  - {problem}" for problem in problems),
                    f"compared: {parity.sentences} sentences, {probe}; try --quantize float32, or report it with these figures",
                ]
            )
        )
    return ExportParity(
        **parity.model_dump(),
        quantize=quantize,
        version=ctranslate2.__version__,
        alignment=alignment,
        alignment_from=measured,
        bytes=(folder / "model.bin").stat().st_size,
    )


def save(
    config: ModelConfig,
    weights: Mapping[str, Tensor],
    vocabularies: tuple[Sequence[str], Sequence[str]],
    special: Specials,
    alignment: Sequence[tuple[int, int]],
    folder: Path,
    quantize: str = "float32",
) -> None:
    """The engine's own files: what any program reads that has the engine."""
    spec: Any = spec_of(config, weights, alignment)
    source, target = (list(vocabulary) for vocabulary in vocabularies)
    spec.register_source_vocabulary(source)
    spec.register_target_vocabulary(target)
    unknown = special.unknown if special.unknown is not None else special.pad
    words = {"unk_token": unknown, "eos_token": special.end, "decoder_start_token": special.start}
    for name, number in {**words, "bos_token": special.start}.items():
        setattr(spec.config, name, target[number])
    spec.config.layer_norm_epsilon, spec.config.add_source_eos = config.norm_eps, special.source_ends
    spec.validate()
    spec.optimize(quantize)
    spec.save(str(folder))


def _alignment(
    bundle: Bundle, ours: TorchEngine, probes: Sequence[str], probe: str
) -> tuple[tuple[tuple[int, int], ...], str]:
    """The bundle's own heads if it names them; else measured on the probes and their translations, if they are real text."""
    config = bundle.settings.model
    if bundle.settings.alignment is not None:
        return bundle.settings.alignment, "named by the bundle"
    if probe not in (GIVEN, VALIDATION):
        return tuple(usual_heads(config)), "the last layer but one, since there was no text to measure with"
    translator = Translator(ours, bundle.settings, bundle.source_tokenizer, bundle.target_tokenizer)
    sources = translator.source_ids(probes)
    targets = translator.target_ids([made.text for made in translator.translate(probes, guards=False)])
    begin = (len(bundle.settings.source_begin), len(bundle.settings.target_begin))
    pairs = [
        (s, t)
        for s, t in zip(sources, targets, strict=True)
        if len(s) > begin[0] and len(t) > begin[1] and max(len(s), len(t)) < config.max_length
    ]
    if not pairs:
        return tuple(usual_heads(config)), "the last layer but one, since nothing was translated"
    found = best_heads(ours.model, [s for s, _ in pairs], [t for _, t in pairs], ours.specials, begin)
    return found.chosen, f"{MEASURED} on {len(pairs)} translations, {found.score:.2f} agreement with word statistics"


def read_parity(bundle: Bundle) -> ExportParity | None:
    """What was written with the export; None if there is none."""
    path = bundle.folder / EXPORT / FILE
    return ExportParity.model_validate(json.loads(path.read_bytes())) if path.is_file() else None
