"""M2M100, and with other languages NLLB, has norms before the sub-layers and many languages in one vocabulary.

Positions are those of tensor2tensor and begin after the id of the padding (fairseq's habit: 2, as the padding is 1). A source begins with
its language; a translation starts with the end and goes on with its language. There is no bias on the logits.
"""

from limelight.interop.architecture import Architecture, Published


class M2M100Published(Published):
    vocab_size: int = 128112
    activation_function: str = "relu"
    scale_embedding: bool = True
    attention_dropout: float = 0.1
    pad_token_id: int = 1
    eos_token_id: int = 2
    decoder_start_token_id: int = 2


M2M100 = Architecture(
    model_type="m2m_100",
    model_class="M2M100ForConditionalGeneration",
    published=M2M100Published,
    norm_order="pre",
    layout="tensor2tensor",
    offset=lambda pad: pad + 1,
    bias=False,
    separate=False,
    fixed={"normalize_before": True, "normalize_embedding": False, "add_final_layer_norm": True},
    tables=False,
)
