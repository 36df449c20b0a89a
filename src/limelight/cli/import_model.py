"""`limelight import` makes a bundle of a model of Hugging Face or CTranslate2."""

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from limelight.cli.fetching import Yes

EXAMPLES = (
    "limelight import hf:Helsinki-NLP/opus-mt-en-de -o en-de --yes",
    "limelight import nllb-200-distilled-600M -o sw-fr --source sw --target fr",
    "limelight import ./finetuned -o en-de --source en --target de --json",
)


def import_model(
    model: Annotated[str, typer.Argument(help="A folder of Hugging Face or of CTranslate2, or hf:OWNER/NAME on the hub.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder of the bundle to write.")],
    source: Annotated[str | None, typer.Option("--source", help="Language to translate from, where the model does not say.")] = None,
    target: Annotated[str | None, typer.Option("--target", help="Language to translate to.")] = None,
    revision: Annotated[str | None, typer.Option("--revision", help="Branch, tag or commit on the hub.")] = None,
    yes: Yes = False,
    force: Annotated[bool, typer.Option("--force", help="Replace a bundle.")] = False,
    no_export: Annotated[bool, typer.Option("--no-export", help="No export for CTranslate2; torch runs the translator.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but errors.")] = False,
) -> None:  # fmt: skip
    """Make a bundle of a model of Hugging Face (OPUS-MT/Marian, M2M100, NLLB, Pegasus) or of CTranslate2. It then works like any other."""
    from limelight.interop.ctranslate2.export import try_export
    from limelight.interop.ctranslate2.load import is_engine_model

    folder = Path(model)
    if is_engine_model(folder):
        facts, lines = _ctranslate2(folder, output, source, target, force)
    else:
        facts, lines = _huggingface(folder, output, (source, target), force)
    if not no_export and (missing := try_export(output)):
        facts["notices"].append(missing)
    if as_json:
        sys.stdout.write(json.dumps(facts, ensure_ascii=False) + "\n")
    elif not quiet:
        first, second = facts.get("languages", (source, target))
        lines += [*(f"notice: {notice}" for notice in facts["notices"]), f"wrote {output}: {first} to {second}"]
        if facts.get("directions", 1) > 1:
            lines.append(f"and {facts['directions'] - 1:,} more directions: limelight translate {output} --from ... --to ...")
        sys.stdout.write("\n".join([*lines, f'try it: limelight translate {output} "..."']) + "\n")


ImportOutput = tuple[dict[str, Any], list[str]]  # for programs, and for people


def _huggingface(folder: Path, output: Path, languages: tuple[str | None, str | None], force: bool) -> ImportOutput:
    from limelight.interop.huggingface.load import import_folder
    from limelight.interop.offers import FACTS
    from limelight.interop.published_pieces import read_published

    asked = read_published(folder, FACTS).get("name") if (folder / FACTS).is_file() else None
    made = import_folder(folder, output, languages, force, str(asked).removeprefix("hf:") if asked else None)
    facts = {
        "folder": str(made.folder),
        "architecture": made.model_class,
        "tokenizer": made.tokenizer_class,
        "parameters": made.parameters,
        "languages": list(made.settings.languages),
        **({} if made.settings.tags is None else {"directions": len(made.settings.directions)}),
        "model": made.settings.model.model_dump(mode="json"),
        "notices": list(made.notices),
    }
    c = made.settings.model
    pieces = f"{c.vocab_size:,}" if c.source_vocab_size is None else f"{c.source_vocab:,} and {c.vocab_size:,}"
    return facts, [
        f"found {made.model_class}: {c.encoder_layers}+{c.decoder_layers} layers, d_model {c.d_model}, {made.parameters:,} parameters",
        f"pieces of {made.tokenizer_class}: {pieces}; at most {c.max_length:,} in a text",
    ]


def _ctranslate2(folder: Path, output: Path, source: str | None, target: str | None, force: bool) -> ImportOutput:
    from limelight.errors import ConfigError
    from limelight.interop.ctranslate2.load import import_model

    if source is None or target is None:
        raise ConfigError(f"{folder} is a model of CTranslate2, which does not say its languages; give --source and --target")
    found = import_model(folder, output, (source, target), force).config.model_dump(mode="json")
    return {"folder": str(output), "architecture": "CTranslate2", "model": found, "notices": []}, []
