"""A bundle becomes a folder that AutoModelForSeq2SeqLM and AutoTokenizer of transformers load, and back again."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor

from limelight.bundle import Bundle
from limelight.bundle.card import card
from limelight.bundle.weights import as_os_error
from limelight.errors import ConfigError, ModelFileError
from limelight.files import whole_folder
from limelight.interop.architecture import ARCHITECTURES, Architecture, unlike_all
from limelight.interop.exported_pieces import encode_json, tokenizer_files
from limelight.interop.file_names import CARD, CONFIG, GENERATION, TOKENIZER_CONFIG, WHOLE
from limelight.interop.huggingface.generation import write_search
from limelight.interop.huggingface.load import OURS, license_of
from limelight.interop.names import TABLES, Weights, to_ours, to_theirs
from limelight.model.config import ModelConfig
from limelight.model.positions import sinusoids

USE = """
## With transformers

```python
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("FOLDER")
model = AutoModelForSeq2SeqLM.from_pretrained("FOLDER")
batch = tokenizer(["..."], return_tensors="pt", padding=True)
tokenizer.batch_decode(model.generate(**batch), skip_special_tokens=True)
```
"""


@dataclass(frozen=True)
class HuggingFaceExport:
    folder: Path
    model_class: str
    tokenizer_class: str
    notices: tuple[str, ...]


def export_folder(bundle: Bundle, folder: Path, force: bool = False) -> HuggingFaceExport:
    """Write the folder, whole. `force` replaces a folder that has the config of a model of Hugging Face, and nothing else."""
    folder = folder.resolve()
    if folder.exists() and not force:
        raise ModelFileError(f"{folder} exists already; give another name, or force=True to replace an export")
    if folder.exists() and not all((folder / name).is_file() for name in (CONFIG, TOKENIZER_CONFIG)):
        raise ModelFileError(f"{folder} is no model of Hugging Face and will not be replaced; give another name")
    architecture = fitting(bundle.settings.model)
    if not bundle.settings.source_ends:
        raise ConfigError("its sources have no end piece, and tokenizers of Hugging Face always write one: export it for CTranslate2")
    weights = bundle.weights()
    theirs = _prove_weights(weights, bundle.settings.model, architecture)
    contents, notices = _contents(bundle, architecture, weights)
    with whole_folder(folder) as beside:
        for name, content in contents.items():
            (beside / name).write_bytes(content)
        try:
            save_file(theirs, beside / WHOLE, metadata={"format": "pt"})
        except SafetensorError as error:
            raise as_os_error(error, beside / WHOLE) from None
        (beside / WHOLE).chmod(beside.stat().st_mode & 0o666)  # safetensors lets only the owner read
    return HuggingFaceExport(folder, architecture.model_class, _tokenizer_class(contents), notices)


def fitting(model: ModelConfig) -> Architecture:
    """The architecture that holds a model, or a ConfigError with all that stands in the way."""
    everywhere = unlike_all(model)
    misfits = {one.model_class: one.misfits(model) for one in ARCHITECTURES.values()}
    found = [one for one in ARCHITECTURES.values() if not misfits[one.model_class]]
    if found and not everywhere:
        return found[0]
    problems = [f"no architecture of theirs has {problem}" for problem in everywhere]
    problems += [f"{name} cannot have {', '.join(some)}" for name, some in misfits.items() if not found]
    raise ConfigError("this model cannot be exported to Hugging Face:", problems)


def _prove_weights(weights: Mapping[str, Tensor], model: ModelConfig, architecture: Architecture) -> Weights:
    """Their weights, from which ours come back bit for bit."""
    theirs = to_theirs(weights, model, architecture.separate)
    back = to_ours(theirs, model)
    wrong = [name for name in weights if name not in back or not torch.equal(weights[name], back[name])]
    if wrong or back.keys() != weights.keys():
        raise ModelFileError(f"the export was not written: {', '.join(wrong)[:300]} would not come back as they are; please report this")
    if architecture.tables:
        theirs |= {name: sinusoids(model.max_length, model.d_model, "halves").float() for name in TABLES}
    # One tensor may stand under two names; safetensors wants each to have its own memory.
    return {name: w.clone(memory_format=torch.contiguous_format) for name, w in theirs.items()}


def _contents(bundle: Bundle, architecture: Architecture, weights: Mapping[str, Tensor]) -> tuple[dict[str, bytes], tuple[str, ...]]:
    settings, model = bundle.settings.aim(), bundle.settings.model
    tags, notices = settings.tags, []
    if len(settings.target_begin) > 1:
        several = "target_begin has several ids, and theirs can force one only"
        raise ConfigError("this bundle cannot be exported to Hugging Face:", [several])
    files = tokenizer_files(bundle)
    kind = _tokenizer_class(files)
    if settings.normalization:
        notices.append(f"texts must be normalized before they come to the tokenizer ({', '.join(settings.normalization)}); theirs does not")
    if settings.source_begin and kind == "MarianTokenizer":
        tag = "".join(bundle.source_tokenizer.pieces(settings.source_begin))
        how = f"a text must begin with {tag}, which Limelight puts there by itself"
        # Their tokenizer reads >>fra<< in a text, and cuts others like any text.
        by_id = "" if tag.startswith(">>") else f"; before its ids: tokenizer.convert_tokens_to_ids({tag!r})"
        notices.append(how + by_id)
    # A translation must be able to begin with its language: theirs suppress after they force.
    kept = {model.end_token, *settings.target_begin, *(tags.target_begin.values() if tags else ())}
    never = tuple(sorted((bundle.target_tokenizer.controls() | {bundle.target_tokenizer.unknown}) - kept))
    generation, more = write_search(settings.search, model, never)
    if settings.target_begin:
        generation["forced_bos_token_id"] = settings.target_begin[0]
    if model.tie == "decoder" and not architecture.separate:
        more.append("the output is written beside the target's embedding, and both are read apart by transformers 5 and later only")
    notices += more
    formats = {str(w.dtype).removeprefix("torch.") for w in weights.values()}
    config = {
        **architecture.write(model),
        "dtype": formats.pop() if len(formats) == 1 else "float32",
        OURS: bundle.settings.model_dump(mode="json", exclude={"tags"} if tags is None else None),
    }
    license = license_of(bundle.folder)
    written = card(bundle.settings, weights, license).replace("library_name: limelight", "library_name: transformers", 1)
    listed = "".join(["\n"] * bool(notices) + [f"- {notice}\n" for notice in notices])
    return {
        CONFIG: encode_json(config),
        GENERATION: encode_json(generation),
        CARD: (written + USE + listed).encode(),
        **files,
    }, tuple(notices)


def _tokenizer_class(files: Mapping[str, bytes]) -> str:
    return str(json.loads(files[TOKENIZER_CONFIG])["tokenizer_class"])
