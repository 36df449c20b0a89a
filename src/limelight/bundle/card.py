"""README.md of a bundle is a model card with the metadata that the Hugging Face hub reads."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from limelight.bundle.settings import BundleSettings

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
    parts = [
        ["---", *_metadata(settings, license), "---", ""],
        [f"# {source} to {target}", ""],
        *([[f"**{verdict}**", ""]] if verdict else []),
        [f"A Transformer that translates from `{source}` to `{target}`, made by {settings.made_by}.", ""],
        ['    limelight translate FOLDER "..."', ""],
        [f"- {fact}" for fact in _facts(settings, weights)],
        *([["", "## Scores", "", *_scores(settings)]] if settings.scores else []),
    ]
    return "\n".join(line for part in parts for line in part) + "\n"


def _metadata(settings: BundleSettings, license: str | None) -> list[str]:
    """Quoted, for the language `no` would be false in YAML."""
    languages = [f"- {json.dumps(language)}" for language in dict.fromkeys(settings.languages)]
    licensed = [] if license is None else [f"license: {json.dumps(license)}"]
    fixed = ["library_name: limelight", "pipeline_tag: translation", "tags:", "- translation"]
    return ["language:", *languages, *licensed, *fixed]


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
