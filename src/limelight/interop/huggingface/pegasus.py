"""Pegasus is Marian with norms before the sub-layers and one more at the end of each stack. `limelight train` makes it.

Made for summaries, but it is a plain Transformer: sinusoidal positions in two halves from 0 on, a bias on the logits that may be left out,
one vocabulary. So a translator of ours loads in transformers as it is (docs/decisions/0022-pegasus-for-export.md).
"""

from limelight.interop.architecture import Architecture, Published


class PegasusPublished(Published):
    vocab_size: int = 50265
    pad_token_id: int = 0
    eos_token_id: int = 1
    decoder_start_token_id: int = 0


PEGASUS = Architecture(
    model_type="pegasus",
    model_class="PegasusForConditionalGeneration",
    published=PegasusPublished,
    norm_order="pre",
    layout="halves",
    offset=lambda pad: 0,
    bias=True,
    separate=False,
    fixed={
        "normalize_before": True,
        "normalize_embedding": False,
        "add_final_layer_norm": True,
        "add_bias_logits": False,
        "static_position_embeddings": True,
    },
    tables=True,
)
