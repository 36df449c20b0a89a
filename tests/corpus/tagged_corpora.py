"""Small corpora of several languages and tags, prepared by the settings that a test gives."""

from pathlib import Path
from typing import Any
from unittest import mock

from made_sentences import sentences

from limelight.corpus import prepare as module
from limelight.corpus.config import PrepareSettings
from limelight.corpus.exchange.engine_local import LocalEngine
from limelight.corpus.feeding.shards import PreparedCorpus
from limelight.corpus.manifest import CorpusManifest

PIECES = {"size": 420, "tags": 2, "placeholders": 2}


def write(folder: Path, name: str, lines: list[str]) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes("".join(f"{line}\n" for line in lines).encode())
    return str(folder / name)


def in_language(code: str, count: int = 120, seed: int = 1) -> list[str]:
    """Sentences line by line in parallel: those of English and German are real, others are German words with the code around them."""
    if code == "en":
        return [source for source, _ in sentences(count, seed)]
    german = [target for _, target in sentences(count, seed)]
    return german if code == "de" else [f"{code} {text}" for text in german]


def prepare(folder: Path, corpora: list[dict[str, Any]], **settings: Any) -> PreparedCorpus:
    """Prepared in this process, without a report and without language identification."""
    filters = {"wrong_language": "off", "wrong_script": "off", **settings.pop("filters", {})}
    settings = {"languages": ("en", "de"), "pieces": PIECES, "held_out": {"valid_pairs": 10, "test_pairs": 10}, **settings}
    made = PrepareSettings(corpora=corpora, filters=filters, **settings)
    with mock.patch.object(module, "page", lambda manifest: ""):
        module.prepare(made, folder, LocalEngine(0), lambda progress: None, anyway=True)
    return PreparedCorpus.open(folder)


def multi(folder: Path, *targets: str, counts: dict[str, int] | None = None, **settings: Any) -> PreparedCorpus:
    """English beside each of the targets, line by line."""
    corpora = []
    for code in targets:
        count = (counts or {}).get(code, 120)
        paths = [write(folder / "text", f"{code}.{side}", in_language(side, count)) for side in ("en", code)]
        corpora.append({"name": f"en-{code}", "paths": paths, "languages": ("en", code)})
    return prepare(folder / "prepared", corpora, **settings)


def held_out_sources(prepared: PreparedCorpus, split: str) -> list[tuple[int, str]]:
    """Corpus and source of each pair that was held out."""
    pairs = prepared.split(split)
    samples = range(pairs.rows)
    names = [corpus.name for corpus in prepared.manifest.corpora]
    return [(names.index(pairs.provenance(at).corpus), pairs.provenance(at).source) for at in samples]


def manifest_of(prepared: PreparedCorpus) -> CorpusManifest:
    return CorpusManifest.load(prepared.folder)
