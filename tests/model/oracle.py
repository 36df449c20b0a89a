"""The Transformer in NumPy float64, written from the equations of "Attention Is All You Need" (Vaswani et al. 2017) alone.

It reads one sentence at a time, so there is no batch and no padding: a position that is not visible is never looked at.
Rows are positions: a weight W is (inputs, outputs) as in the paper, and x W is a matrix product. Every head has matrices of its own.

    attention   {"W_Q": [W_1^Q, ..., W_h^Q], "W_K": [...], "W_V": [...], "b_Q": [...], "b_K": [...], "b_V": [...], "W_O", "b_O"}
    feed_forward {"W_1", "b_1", "W_2", "b_2"}, and for the gated forms the second projection {"V", "c"}
    norm        {"gain", "bias"}, without the bias for RMSNorm
    layers      {"attention", "attention_norm", "feed_forward", "feed_forward_norm"}, in the decoder also {"cross", "cross_norm"}
    model       {"source_embedding", "target_embedding", "encoder", "decoder", "output", "output_bias"}, and where they exist
                {"encoder_norm", "decoder_norm", "source_positions", "target_positions"}
"""

import math
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Variant:
    """The choices that are not parameters. The defaults are the paper's."""

    norm_order: str = "post"
    norm: str = "layer"
    norm_eps: float = 1e-5
    activation: str = "relu"
    positions: str = "sinusoidal"
    position_layout: str = "interleaved"
    position_offset: int = 0
    scale_embeddings: bool = True


def softmax(x):
    powers = [math.exp(number - max(x)) for number in x]
    return [power / sum(powers) for power in powers]


def attention(q, k, v, visible):
    """Equation 1, for one query after another: softmax(q k^T / sqrt(d_k)) v over the keys that this query sees.

    q (T, K), k (S, K), v (S, K), visible (T, S) -> (T, K)
    """
    out = np.zeros((q.shape[0], v.shape[1]))
    for t in range(q.shape[0]):
        seen = [s for s in range(k.shape[0]) if visible[t][s]]
        weights = softmax([np.dot(q[t], k[s]) / math.sqrt(k.shape[1]) for s in seen])
        for weight, s in zip(weights, seen, strict=True):
            out[t] += weight * v[s]
    return out


def causal(length):
    """Position t sees the positions up to t (3.2.3)."""
    return [[s <= t for s in range(length)] for t in range(length)]


def every_query(visible, queries):
    """The same keys (S,) for each query: (T, S)."""
    return [list(visible) for _ in range(queries)]


def multi_head(x, y, visible, p, turn=lambda z: z):
    """Concat(head_1, ..., head_h) W^O with head_i = Attention(x W_i^Q, y W_i^K, y W_i^V) (3.2.2). x (T, D), y (S, D).

    With fewer key heads than query heads, equally many neighbours use each (grouped queries, Ainslie et al. 2023).
    `turn` is rotary's, on every q and k.
    """
    sharing = len(p["W_Q"]) // len(p["W_K"])
    heads = []
    for i in range(len(p["W_Q"])):
        g = i // sharing
        q = turn(x @ p["W_Q"][i] + p["b_Q"][i])
        k = turn(y @ p["W_K"][g] + p["b_K"][g])
        v = y @ p["W_V"][g] + p["b_V"][g]
        heads.append(attention(q, k, v, visible))
    return np.concatenate(heads, axis=1) @ p["W_O"] + p["b_O"]


def sinusoidal_positions(length, d_model, layout="interleaved", first=0):
    """PE(pos, 2i) = sin(pos / 10000^(2i/d_model)), PE(pos, 2i+1) = cos(the same) (3.5).

    `halves` puts the sines before the cosines. `tensor2tensor` does too, with frequencies in a geometric row from 1 to 1/10000.
    """
    table = np.zeros((length, d_model))
    half = d_model // 2
    for row in range(length):
        for i in range(half):
            angle = (first + row) / 10000 ** (2 * i / d_model)
            if layout == "tensor2tensor" and half > 1:
                angle = (first + row) * (1 / 10000) ** (i / (half - 1))
            sine, cosine = (2 * i, 2 * i + 1) if layout == "interleaved" else (i, half + i)
            table[row, sine], table[row, cosine] = math.sin(angle), math.cos(angle)
    return table


def rotary(x, layout="interleaved", first=0):
    """RoFormer (Su et al. 2021), equation 16: pair i of position m, as a complex number, times e^(i m theta_i)."""
    half = x.shape[1] // 2
    out = np.zeros_like(x)
    for row in range(x.shape[0]):
        for i in range(half):
            a, b = (2 * i, 2 * i + 1) if layout == "interleaved" else (i, half + i)
            turned = complex(x[row, a], x[row, b]) * np.exp(1j * (first + row) * 10000 ** (-2 * i / x.shape[1]))
            out[row, a], out[row, b] = turned.real, turned.imag
    return out


ACTIVATIONS = {
    "relu": lambda x: max(0.0, x),
    "gelu": lambda x: x * (1 + math.erf(x / math.sqrt(2))) / 2,  # x P(X <= x), Hendrycks and Gimpel 2016
    "silu": lambda x: x / (1 + math.exp(-x)),
}
GATED = {"reglu": "relu", "geglu": "gelu", "swiglu": "silu"}


def feed_forward(x, p, activation="relu"):
    """max(0, x W_1 + b_1) W_2 + b_2 (equation 2). Gated: (f(x W_1 + b_1) * (x V + c)) W_2 + b_2 (Shazeer 2020, equation 6)."""
    f = np.vectorize(ACTIVATIONS[GATED.get(activation, activation)], otypes=[float])
    out = np.zeros((x.shape[0], p["W_2"].shape[1]))
    for t in range(x.shape[0]):
        inner = f(x[t] @ p["W_1"] + p["b_1"])
        if activation in GATED:
            inner = inner * (x[t] @ p["V"] + p["c"])
        out[t] = inner @ p["W_2"] + p["b_2"]
    return out


def layer_norm(x, p, eps=1e-5):
    """Ba et al. 2016, equation 4: (x - mean) / sqrt(variance + eps) * gain + bias, for each position."""
    out = np.zeros_like(x)
    for t in range(x.shape[0]):
        mean = sum(x[t]) / len(x[t])
        variance = sum((number - mean) ** 2 for number in x[t]) / len(x[t])
        out[t] = (x[t] - mean) / math.sqrt(variance + eps) * p["gain"] + p["bias"]
    return out


def rms_norm(x, p, eps=1e-5):
    """Zhang and Sennrich 2019, equation 4: x / sqrt(mean of squares + eps) * gain, for each position."""
    return np.array([row / math.sqrt(sum(number**2 for number in row) / len(row) + eps) * p["gain"] for row in x])


def normalize(x, p, variant):
    return {"layer": layer_norm, "rms": rms_norm}[variant.norm](x, p, variant.norm_eps)


def residual(x, sublayer, norm, variant):
    """LayerNorm(x + Sublayer(x)) (3.1), or x + Sublayer(LayerNorm(x)) (Xiong et al. 2020)."""
    if variant.norm_order == "post":
        return normalize(x + sublayer(x), norm, variant)
    return x + sublayer(normalize(x, norm, variant))


def encoder_layer(x, visible, p, variant):
    """Self-attention, then feed-forward (3.1). x (S, D), visible (S, S)."""
    x = residual(x, lambda y: multi_head(y, y, visible, p["attention"], turn(variant)), p["attention_norm"], variant)
    return residual(x, lambda y: feed_forward(y, p["feed_forward"], variant.activation), p["feed_forward_norm"], variant)


def decoder_layer(x, memory, visible, source_visible, p, variant):
    """Masked self-attention, attention to the memory, feed-forward (3.1). visible (T, T), source_visible (T, S)."""
    x = residual(x, lambda y: multi_head(y, y, visible, p["attention"], turn(variant)), p["attention_norm"], variant)
    x = residual(x, lambda y: multi_head(y, memory, source_visible, p["cross"]), p["cross_norm"], variant)
    return residual(x, lambda y: feed_forward(y, p["feed_forward"], variant.activation), p["feed_forward_norm"], variant)


def turn(variant):
    if variant.positions == "rotary":
        return lambda x: rotary(x, variant.position_layout, variant.position_offset)
    return lambda x: x


def embed(ids, table, learned, variant):
    """Embeddings times sqrt(d_model) (3.4), plus positions (3.5)."""
    d_model = table.shape[1]
    x = np.array([table[piece] * (math.sqrt(d_model) if variant.scale_embeddings else 1) for piece in ids])
    if variant.positions == "sinusoidal":
        return x + sinusoidal_positions(len(ids), d_model, variant.position_layout, variant.position_offset)
    if variant.positions == "learned":
        return x + np.array([learned[variant.position_offset + place] for place in range(len(ids))])
    return x


def encode(source, visible, p, variant):
    """Source ids (S,), and which of them are pieces (S,) -> memory (S, D)."""
    x = embed(source, p["source_embedding"], p.get("source_positions"), variant)
    for layer in p["encoder"]:
        x = encoder_layer(x, every_query(visible, len(source)), layer, variant)
    return normalize(x, p["encoder_norm"], variant) if variant.norm_order == "pre" else x


def decode(target, memory, visible, p, variant):
    """Target ids (T,) -> (T, D). `visible` (S,) is the source's."""
    x = embed(target, p["target_embedding"], p.get("target_positions"), variant)
    for layer in p["decoder"]:
        x = decoder_layer(x, memory, causal(len(target)), every_query(visible, len(target)), layer, variant)
    return normalize(x, p["decoder_norm"], variant) if variant.norm_order == "pre" else x


def logits(source, target, visible, p, variant):
    """The whole model for one pair: (T, V), before the softmax."""
    return decode(target, encode(source, visible, p, variant), visible, p, variant) @ p["output"] + p["output_bias"]
