"""Marian, which OPUS-MT uses, is the paper's Transformer with norms after the sub-layers.

The first piece has position 0, sine and cosine stand in two halves, the logits have a bias, and a translation starts with the padding.
Both sides may have vocabularies of their own.
"""

from limelight.interop.architecture import Architecture, Published


class MarianPublished(Published):
    vocab_size: int = 58101
    pad_token_id: int = 58100
    eos_token_id: int = 0
    decoder_start_token_id: int = 58100


MARIAN = Architecture(
    model_type="marian",
    model_class="MarianMTModel",
    published=MarianPublished,
    norm_order="post",
    layout="halves",
    offset=lambda pad: 0,
    bias=True,
    separate=True,
    fixed={
        "normalize_before": False,
        "normalize_embedding": False,
        "add_final_layer_norm": False,
        "add_bias_logits": False,
        "static_position_embeddings": True,
    },
    tables=False,
)
