"""A bundle is exported for CTranslate2, compared with our own engine, and kept only if it translates the same."""

from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import ctranslate2
from pydantic import Field
from torch import Tensor

from limelight.bundle.bundle import Bundle, edit_copy, put_settings, read
from limelight.bundle.layout import EXPORT
from limelight.decoding.steps import Specials
from limelight.engines.ctranslate2 import CTranslate2Engine, computes_in
from limelight.engines.torch import TorchEngine, usual_heads
from limelight.errors import ConfigError, LimelightError, ModelFileError
from limelight.files import whole_folder
from limelight.interop.alignment_heads import best_heads
from limelight.interop.ctranslate2.spec import lacks, spec_of
from limelight.interop.parity import GIVEN, VALIDATION, Parity, ParityProbes, compare, find_probes, translate_probes
from limelight.model.config import ModelConfig
from limelight.runtime import count_threads
from limelight.translator.loading import specials
from limelight.translator.translate import Translator
from limelight.translator.translation import Translation

QUANTIZE = ("float32", "bfloat16", "float16", "int8", "int8_float32", "int8_bfloat16", "int8_float16")
FILE, MEASURED = "parity.json", "measured"


class ExportParity(Parity):
    """Export parity says what the export is, beside how close it came. Written as parity.json."""

    quantize: str
    version: str = Field(description="Of CTranslate2.")
    alignment: tuple[tuple[int, int], ...] = Field(description="Layer and head, as our model counts them.")
    alignment_from: str = Field(description="Where these heads come from.")
    bytes: int = Field(description="Of model.bin.")
    int8: Parity | None = Field(None, description="The same file, computed in 8 bits by whoever asks for that.")


def export(bundle: Bundle, quantize: str = "float32", texts: Sequence[str] | None = None, into: Path | None = None) -> ExportParity:
    """Write `ctranslate2/` into the bundle, or only the engine's files `into` a new folder. Refused when it translates otherwise.

    `texts`: sentences of the source to compare with; by default of the validation set of the bundle's run.
    """
    if quantize not in QUANTIZE:
        raise ConfigError(f"CTranslate2 has no weights in {quantize!r}; choose one of {', '.join(QUANTIZE)}")
    if missing := lacks(bundle.settings.model):
        raise ConfigError(f"CTranslate2 cannot run the model of {bundle.folder}:", missing)
    if into is not None and into.exists():
        raise ModelFileError(f"{into} exists already; give another name")
    if into is not None:
        with whole_folder(into.resolve()) as folder:
            return _convert(bundle, folder, quantize, texts)
    with edit_copy(bundle, left_out=EXPORT.rstrip("/")) as beside:
        (beside / EXPORT).mkdir()
        made = _convert(bundle, beside / EXPORT, quantize, texts)
        if bundle.settings.alignment is None and made.alignment_from.startswith(MEASURED):
            # So that both engines align alike.
            put_settings(beside, bundle.settings.changed(alignment=made.alignment))
    return made


def try_export(folder: Path) -> str | None:
    """Export a new bundle, with which it is fast; return why there is no export, if there is none."""
    try:
        export(read(folder))
    except LimelightError as error:
        return f"there is no export to CTranslate2, and torch runs the translator: {error}"
    return None


def _convert(bundle: Bundle, folder: Path, quantize: str, texts: Sequence[str] | None) -> ExportParity:
    model = bundle.load_model()
    ours = TorchEngine(model, specials(bundle), bundle.settings.alignment, count_threads(None).value)
    probes = find_probes(bundle, texts)
    wanted = translate_probes(bundle, ours, probes)
    alignment, measured = _alignment(bundle, ours, probes, wanted)
    vocabularies = (bundle.source_tokenizer.vocabulary, bundle.target_tokenizer.vocabulary)
    save(model.config, model.state_dict(), vocabularies, specials(bundle), alignment, folder, quantize)

    def compare_in(numbers: str, compute: str) -> Parity:
        with closing(CTranslate2Engine(folder, vocabularies, specials(bundle), ours.longest_source, "cpu", compute)) as other:
            return compare(wanted, translate_probes(bundle, other, probes), other.name, numbers, probes.origin)

    parity = compare_in(quantize, "default")
    if problems := parity.problems():
        listed = "\n".join(f"  - {problem}" for problem in problems)
        raise ModelFileError(
            f"the export of {bundle.folder} does not translate as the bundle does, and was not kept:\n{listed}\n{parity.advice}"
        )
    in_8_bits = quantize == "float32" and "int8" in computes_in("cpu")
    made = ExportParity(
        **parity.model_dump(),
        quantize=quantize,
        version=ctranslate2.__version__,
        alignment=alignment,
        alignment_from=measured,
        bytes=(folder / "model.bin").stat().st_size,
        int8=compare_in("int8", "int8") if in_8_bits else None,
    )
    (folder / FILE).write_bytes(made.model_dump_json(indent=1).encode() + b"\n")
    return made


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
    bundle: Bundle, ours: TorchEngine, probes: ParityProbes, translated: Sequence[Translation]
) -> tuple[tuple[tuple[int, int], ...], str]:
    """The bundle's own heads if it names them; else measured on the probes and their translations, if they are real text."""
    config = bundle.settings.model
    if bundle.settings.alignment is not None:
        return bundle.settings.alignment, "named by the bundle"
    if probes.origin not in (GIVEN, VALIDATION):
        return tuple(usual_heads(config)), "the last layer but one, since there was no text to measure with"
    translator = Translator(ours, bundle.settings, bundle.source_tokenizer, bundle.target_tokenizer)
    begin = (len(translator.settings.source_begin), len(translator.settings.target_begin))
    every: list[tuple[list[int], list[int]]] = []
    for view, places in probes.share_out(translator):
        if len(view.settings.source_begin) == begin[0]:  # of the others, with names before them, the words stand elsewhere
            targets = view.target_ids([translated[at].text for at in places])
            every += zip(view.source_ids([probes.texts[at] for at in places]), targets, strict=True)
    most = config.max_length
    pairs = [(s, t) for s, t in every if begin[0] < len(s) < most and begin[1] < len(t) < most]
    if not pairs:
        return tuple(usual_heads(config)), "the last layer but one, since nothing was translated"
    found = best_heads(ours.model, [s for s, _ in pairs], [t for _, t in pairs], ours.specials, begin)
    return found.chosen, f"{MEASURED} on {len(pairs)} translations, {found.score:.2f} agreement with word statistics"
