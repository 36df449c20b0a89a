"""Parameters of a model are counted by part from `ModelConfig` alone; nothing is built. By name and shape: `planning.cost.weights`."""

from limelight.model.config import ModelConfig


def parameters(config: ModelConfig) -> dict[str, int]:
    """By part: embeddings (with the output where it is a matrix of its own), encoder, decoder."""
    c = config
    vocabularies = {"all": c.vocab_size, "decoder": c.vocab_size + c.source_vocab}.get(c.tie, 2 * c.vocab_size + c.source_vocab)
    positions = 2 * (c.max_length + c.position_offset) * c.d_model if c.positions == "learned" else 0
    norm = c.d_model * (2 if c.norm == "layer" else 1)
    block = attention(c) + feed_forward(c) + 2 * norm
    last = norm if c.norm_order == "pre" else 0
    return {
        "embeddings": vocabularies * c.d_model + positions + (c.vocab_size if c.output_bias else 0),
        "encoder": c.encoder_layers * block + last,
        "decoder": c.decoder_layers * (block + attention(c) + norm) + last,
    }


def attention(c: ModelConfig) -> int:
    """W_Q, W_K, W_V and W_O, with their biases."""
    narrow = c.kv_heads * c.d_head
    return 2 * c.d_model * (c.heads_width + narrow) + (c.d_model + c.heads_width + 2 * narrow if c.bias else 0)


def feed_forward(c: ModelConfig) -> int:
    up = 2 if c.gated else 1
    return (up + 1) * c.d_model * c.d_ff + (up * c.d_ff + c.d_model if c.bias else 0)
