"""The facts that a trace states of its model are gathered here, with a fingerprint of the weights."""

import hashlib

from limelight.bundle import BundleSettings
from limelight.inspection.trace import ModelFacts
from limelight.model.transformer import Transformer

SAMPLED = 256  # numbers of each weight


def facts_of(model: Transformer, settings: BundleSettings) -> ModelFacts:
    c, (source, target) = model.config, settings.languages
    steps = (settings.trained_on or {}).get("steps")
    return ModelFacts(
        id=f"{source}-{target}",
        step=steps if isinstance(steps, int) else None,
        sha=fingerprint(model),
        enc_layers=c.encoder_layers,
        dec_layers=c.decoder_layers,
        heads=c.num_heads,
        d_model=c.d_model,
        d_ff=c.d_ff,
        norm=c.norm_order,
        positions=c.positions,
        source=source,
        target=target,
        vocab=c.vocab_size,
    )


def fingerprint(model: Transformer) -> str:
    """SHA-256 of some numbers of every weight, 12 hexadecimal digits: another step of a training has another one. All numbers of a
    large model would take longer than the trace."""
    digest = hashlib.sha256()
    for name, weight in sorted(model.named_parameters()):
        flat = weight.detach().reshape(-1)
        some = flat[:: max(1, len(flat) // SAMPLED)].float().cpu().contiguous()
        digest.update(f"{name}{tuple(weight.shape)}".encode() + some.numpy().tobytes())
    return digest.hexdigest()[:12]
