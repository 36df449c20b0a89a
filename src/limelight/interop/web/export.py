"""A bundle is exported as a page that translates inside a browser, without a server. See docs/web.md."""

import base64
import contextlib
import gzip
import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import torch

from limelight.bundle.bundle import Bundle
from limelight.bundle.card import find_warning
from limelight.bundle.layout import CONFIG, PIECES
from limelight.bundle.settings import Learnt
from limelight.errors import ConfigError, ModelFileError
from limelight.files import sha256_of, stamp_of, whole_folder, write_whole
from limelight.inspection.saving.page import embed_json
from limelight.interop.onnx.export import config_of
from limelight.interop.onnx.graphs import write_graphs
from limelight.interop.onnx.parity import prove
from limelight.interop.parity import Parity, find_probes, plain_search
from limelight.interop.web.browser import find_browsers, prove_in_browser
from limelight.interop.web.numbers import name_of, write_numbers
from limelight.text.language_names import name as name_language
from limelight.text.pieces.tokenizer import SPACE, Tokenizer

FORMAT: Final = 1
PAGE: Final = Path(__file__).with_name("page")
INDEX, MODELS, PROOF = "index.html", "models.json", "prove.html"
SHELL: Final = ("worker.js", "ort.wasm")  # what the page asks for beside a model
PLACE: Final = b'<script type="application/json" id="files">null</script>'
NUMBERS: Final = ("uint8", "float32")  # the first is what the page uses unless it is told otherwise


@dataclass(frozen=True)
class WebExport:
    path: Path
    files: dict[str, int]
    browser: str | None
    parity: list[Parity]


def export_web(
    bundle: Bundle, path: Path, quantize: str | None = None, single_file: bool = False, texts: Sequence[str] | None = None
) -> WebExport:
    """A folder, or with `single_file` an HTML file. `quantize`: uint8 or float32 alone. `texts`: lines of the source to compare with."""
    numbers = _choose_numbers(quantize, single_file)
    path = path.resolve()
    refuse_pieces(bundle)
    page = find_page()
    if path.exists() and (single_file or not (path / MODELS).is_file()):
        raise ModelFileError(f"{path} exists already and is no page of models; give another name")
    before = stamp_of(path / MODELS)
    others = _read_models(path, page) if path.is_dir() else []
    with tempfile.TemporaryDirectory() as beside:
        folder = Path(beside, "page")
        shutil.copytree(page, folder)
        if others:  # they stay
            shutil.copytree(path / "models", folder / "models")
        made = _write_model(bundle, folder, numbers)
        kept = [each for each in others if each["id"] != made["id"]]
        listed = {"format": FORMAT, "shell": _describe(folder, SHELL), "models": [*kept, made]}
        (folder / MODELS).write_text(json.dumps(listed, indent=1, ensure_ascii=False) + "\n", encoding="utf-8", newline="\n")
        browser, parity = None, list[Parity]()
        for each in find_browsers():
            with contextlib.suppress(ChildProcessError):  # one that does not start is none
                browser, parity = each, prove_in_browser(bundle, folder, made["id"], numbers, find_probes(bundle, texts), each)
                break
        (folder / PROOF).unlink()
        files = {str(each.relative_to(folder)): each.stat().st_size for each in sorted(folder.rglob("*")) if each.is_file()}
        if single_file:
            write_whole(path, _one_file(folder, made))
            files = {path.name: path.stat().st_size}
        elif stamp_of(path / MODELS) != before:
            raise ModelFileError(f"{path} was changed by another export meanwhile, and nothing was written; export again")
        else:
            with whole_folder(path) as place:
                shutil.copytree(folder, place, dirs_exist_ok=True)
    return WebExport(path, files, browser, parity)


def refuse_pieces(bundle: Bundle) -> None:
    """Every reason why a browser would cut words otherwise than we do."""
    problems = []
    for side, tokenizer in (("source", bundle.source_tokenizer), ("target", bundle.target_tokenizer)):
        problems += [f"{side}: {why}" for why in _explain_pieces(tokenizer)]
    if problems:
        advice = "learn pieces with limelight train, or export to ctranslate2 or onnx"
        raise ConfigError(f"the pieces of {bundle.folder} cannot be exported to web ({advice}):", problems)


def find_page() -> Path:
    missing = [name for name in (INDEX, PROOF, "sw.js", *SHELL) if not (PAGE / name).is_file()]
    if missing or (PAGE / INDEX).read_bytes().count(PLACE) != 1:
        raise ModelFileError(
            f"the page that translates in a browser was not built ({PAGE}); in the folder of the source, with Node.js there, run make web; "
            "a package from an index has the page in it"
        )
    return PAGE


def name_model(folder: Path) -> str:
    """In letters that every host can serve; two names that differ in other letters alone stay two."""
    named = folder.parent.name if folder.name == "bundle" else folder.name
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", named).strip(".-") or "model"
    return name if name == named else f"{name}-{hashlib.sha256(os.fsencode(named)).hexdigest()[:8]}"


def _choose_numbers(quantize: str | None, single_file: bool) -> tuple[str, ...]:
    if quantize not in (None, *NUMBERS):
        raise ConfigError(f"a web page has no weights in {quantize!r}; choose {' or '.join(NUMBERS)}, or leave it out for both")
    return NUMBERS[:1] if quantize is None and single_file else NUMBERS if quantize is None else (quantize,)


def _explain_pieces(tokenizer: Tokenizer) -> list[str]:
    found = [] if tokenizer.numbers is None else ["pieces are numbered by a vocabulary.json"]
    if not tokenizer.facts.keeps_characters:
        found.append("a table of replacements (such as NFKC) is part of the pieces")
    if tokenizer.facts.algorithm not in ("bpe", "unigram"):
        found.append(f"the algorithm is {tokenizer.facts.algorithm}, and bpe and unigram are known")
    spaced = tokenizer.processor.normalize("a  b ") == f"{SPACE}a{SPACE}{SPACE}b{SPACE}"
    return found if found or spaced else ["spaces are joined or dropped by the pieces"]


def _write_model(bundle: Bundle, folder: Path, numbers: Sequence[str]) -> dict[str, Any]:
    name = name_model(bundle.folder)
    place = folder / "models" / name
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    model = bundle.load_model(torch.float32, "cpu")
    with tempfile.TemporaryDirectory() as work:
        write_graphs(model, Path(work), lit=True)
        graphs = {each: write_numbers(place, Path(work), each) for each in numbers}
    exact = {each: prove(model, place, (name_of("encoder", each), name_of("decoder", each)), each == "float32") for each in numbers}
    for each in PIECES:
        if (bundle.folder / each).is_file():
            shutil.copyfile(bundle.folder / each, place / each)
    settings, target, learnt = bundle.settings, bundle.target_tokenizer, bundle.settings.learnt or Learnt()
    plain = config_of(bundle, place, exact[numbers[-1]])
    config = plain | {
        "search": plain_search(settings.search).model_dump(mode="json"),
        "by_words": bundle.source_tokenizer.by_words,
        "directions": settings.directions,
        "never": sorted({*plain["never"], *target.placeholders().values()} - {settings.model.end_token}),
        "marks": min(len(target.placeholders().keys() & bundle.source_tokenizer.placeholders().keys()), learnt.marks),
        "taught": learnt.longest,
        "confidence": None if settings.confidence is None else settings.confidence.model_dump(mode="json"),
        "alignment": settings.alignment,
        "layers": settings.model.decoder_layers,
        "heads": settings.model.num_heads,
        "kv_heads": settings.model.kv_heads,
        "d_head": settings.model.d_head,
        "longest": settings.model.max_length - 1,
    }
    (place / CONFIG).write_text(json.dumps(config, ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8", newline="\n")
    pieces = [each.name for each in sorted(place.glob("*.model"))]
    return {
        "id": name,
        "directions": settings.directions,
        "languages": {code: name_language(code) for pair in settings.directions for code in pair},
        "verdict": find_warning(settings),
        "names": [] if settings.tags is None else list(settings.tags.names),
        "numbers": list(numbers),
        "graphs": graphs,
        "pieces": pieces,
        "files": _describe(place, [CONFIG, *pieces, *(each for some in graphs.values() for each in some)]),
    }


def _describe(folder: Path, names: Sequence[str]) -> dict[str, dict[str, Any]]:
    return {name: {"bytes": (folder / name).stat().st_size, "sha256": sha256_of(folder / name)} for name in names}


def _read_models(folder: Path, page: Path) -> list[dict[str, Any]]:
    """What a page that is there already lists. An error where an export into it would lose something."""
    try:
        listed = json.loads((folder / MODELS).read_bytes())
        found: list[dict[str, Any]] = listed["models"] if listed["format"] == FORMAT else []
        whole = all((folder / "models" / each["id"]).is_dir() for each in found)
    except (ValueError, KeyError, TypeError):
        found, whole = [], False
    if not found or not whole:
        raise ModelFileError(f"{folder / MODELS} is damaged, of another version, or without its models; export to another folder")
    if more := sorted({each.name for each in folder.iterdir()} - {each.name for each in page.iterdir()} - {MODELS, "models"}):
        raise ModelFileError(f"{folder} has files that are of no page and would be lost ({', '.join(more[:5])}); export beside it and copy")
    return found


def _one_file(folder: Path, made: dict[str, Any]) -> bytes:
    """The page with worker, runtime and model inside, each compressed."""
    inside = [MODELS, *SHELL, *(f"models/{made['id']}/{name}" for name in made["files"])]
    packed = {name: base64.b64encode(gzip.compress((folder / name).read_bytes(), mtime=0)).decode() for name in inside}
    begin, end = PLACE.split(b"null")
    return (folder / INDEX).read_bytes().replace(PLACE, begin + embed_json(packed) + end)
