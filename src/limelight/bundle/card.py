"""README.md of a bundle is a model card with the metadata that the Hugging Face hub reads."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from limelight.bundle.settings import BundleSettings
from limelight.bundle.tags import BundleTags, Direction
from limelight.text.pieces.tags import SYNTHETIC

if TYPE_CHECKING:
    from torch import Tensor

# Among the facts of `trained_on`: what the translator is good for, which stands above all else.
VERDICT: Final = "verdict"


def find_warning(settings: BundleSettings) -> str | None:
    """Return what its training said of a translator that nobody should use; None for all others."""
    verdict = str((settings.trained_on or {}).get(VERDICT, ""))
    return verdict if verdict.startswith("NOT USABLE") else None


def card(settings: BundleSettings, weights: "Mapping[str, Tensor]", license: str | None) -> str:
    """Says nothing of where or when it was written: the same translator has the same card."""
    source, target = settings.languages
    verdict = (settings.trained_on or {}).get(VERDICT)
    more = len(settings.directions) - 1
    parts = [
        ["---", *_metadata(settings, license), "---", ""],
        [f"# {source} to {target}" + (f" and {more:,} more directions" if more else ""), ""],
        *([[f"**{verdict}**", ""]] if verdict else []),
        [f"A Transformer that translates from `{source}` to `{target}`, made by {settings.made_by}.", ""],
        ['    limelight translate FOLDER "..."', ""],
        [f"- {fact}" for fact in _facts(settings, weights)],
        *([["", "## Directions and tags", "", *_directions(settings.languages, settings.tags)]] if settings.tags else []),
        *([["", "## Scores", "", *_scores(settings)]] if settings.scores else []),
    ]
    return "\n".join(line for part in parts for line in part) + "\n"


def _metadata(settings: BundleSettings, license: str | None) -> list[str]:
    """Quoted, for the language `no` would be false in YAML."""
    first, tags = settings.languages, settings.tags
    every = first if tags is None else (*first, *tags.list_sources(first), *tags.list_targets(first))
    languages = [f"- {json.dumps(language)}" for language in dict.fromkeys(every)]
    licensed = [] if license is None else [f"license: {json.dumps(license)}"]
    fixed = ["library_name: limelight", "pipeline_tag: translation", "tags:", "- translation"]
    return ["language:", *languages, *licensed, *fixed, *_model_index(settings)]


def _model_index(settings: BundleSettings) -> list[str]:
    """The scores as the hub reads them; each line is JSON, which is YAML too."""
    between = "-".join(settings.languages)
    results = [
        {
            "task": {"type": "translation", "name": f"Translation {between}"},
            "dataset": {"type": s.test_set, "name": s.test_set, "config": between},
            "metrics": [{"type": kind, "name": s.metric, "value": s.value, "args": {"signature": s.signature, "lines": s.lines}}],
        }
        for s, kind in [(s, s.metric.lower().rstrip("+").replace(" ", "_")) for s in settings.scores]
    ]
    lines = [f"  - {json.dumps(result, ensure_ascii=False)}" for result in results]
    return ["model-index:", f"- name: {json.dumps(between)}", "  results:", *lines] if results else []


def _directions(first: Direction, tags: BundleTags) -> list[str]:
    """What a translator may be asked for: `--to fr --tag formal`."""
    lines = []
    if tags.directions:
        pairs = ", ".join(f"`{source}` to `{target}`" for source, target in tags.directions)
        lines.append(f"- directions: {pairs}")
        if tags.inherited:
            old = ", ".join(f"`{source}` to `{target}`" for source, target in tags.inherited)
            lines.append(f"- taught to the translator before this one, and neither taught nor scored since: {old}")
        every = {(source, target) for source in tags.list_sources(first) for target in tags.list_targets(first) if source != target}
        if every - set(tags.directions):
            lines.append("- others between these languages were never trained; what comes of them has to be looked at")
    elif tags.source or tags.target or tags.target_begin:
        sources, targets = (", ".join(f"`{code}`" for code in some) for some in (tags.list_sources(first), tags.list_targets(first)))
        lines += [f"- from {sources}", f"- to {targets}"]
    if tags.names:
        lines.append(f"- tags: {', '.join(f'`{name}`' for name in tags.names)}")
    if SYNTHETIC in tags.names:
        lines.append(f"- `{SYNTHETIC}` marked training sources that a model wrote; a translation is asked for without it")
    target = next((code for code in tags.list_targets(first) if code not in first), first[1])
    wanted = [name for name in tags.names if name != SYNTHETIC]
    asked = (f" --to {target}" if target != first[1] else "") + (f" --tag {wanted[0]}" if wanted else "")
    return [*lines, "", f'    limelight translate FOLDER{asked} "..."']


def _facts(settings: BundleSettings, weights: "Mapping[str, Tensor]") -> list[str]:
    c = settings.model
    parameters, size = sum(w.numel() for w in weights.values()), sum(w.nbytes for w in weights.values())
    dtypes = sorted({str(w.dtype).removeprefix("torch.") for w in weights.values()})
    pieces = f"{c.vocab_size:,}" if c.source_vocab_size is None else f"{c.source_vocab:,} and {c.vocab_size:,}"
    return [
        f"layers: {c.encoder_layers} in the encoder, {c.decoder_layers} in the decoder",
        f"width: d_model {c.d_model}, d_ff {c.d_ff}, {c.num_heads} heads",
        f"pieces: {pieces}; at most {c.max_length:,} in a text",
        f"parameters: {parameters:,} in {', '.join(dtypes)}, {size / 1e6:,.1f} MB",
        f"normalization: {', '.join(settings.normalization) or 'none'}",
        *(f"{key}: {value}" for key, value in (settings.trained_on or {}).items() if key != VERDICT),
    ]


def _scores(settings: BundleSettings) -> list[str]:
    line = "- {s.metric} {s.value:.2f} on {s.test_set} ({s.lines:,} lines), signature `{s.signature}`"
    return [line.format(s=score) for score in settings.scores]
