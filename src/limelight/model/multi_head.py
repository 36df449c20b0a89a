"""Multi-head attention is many spotlights at once, in three places of the model (sections 3.2.2 and 3.2.3).

    encoder self-attention      SelfAttention, every piece sees every piece
    decoder self-attention      SelfAttention with a causal mask: a piece sees itself and what came before
    encoder-decoder attention   CrossAttention, the target looks at the source

Each attention is a spotlight with a dimmer: `gate` scales every head before W^O, and each function in `looks` sees its
stages and may change them.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from limelight.errors import ConfigError
from limelight.model.attention import Visible, attend, attend_in_stages, share_heads
from limelight.model.cache import KeyValues, SelfCache
from limelight.model.config import ModelConfig
from limelight.model.grid import Grid
from limelight.model.positions import Rotation, rotate

Spy = Callable[[str, Tensor], Tensor | None]  # sees a stage by name; returns a tensor to put in its place, or None


class MultiHeadAttention(nn.Module):
    """Multi-head attention is what the three attentions share.

        MultiHead(Q, K, V) = Concat(head_1, ..., head_h) W^O
        head_i             = Attention(Q W_i^Q, K W_i^K, V W_i^V)

    With `num_kv_heads` below `num_heads`, neighbouring heads share k and v (grouped queries, Ainslie et al. 2023).
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.num_heads, self.kv_heads, self.d_head = config.num_heads, config.kv_heads, config.d_head
        self.layout, self.drop = config.position_layout, config.attention_dropout
        self.out = nn.Linear(self.num_heads * self.d_head, config.d_model, bias=config.bias)
        self.looks: list[Spy] = []
        # (H,), or (B, H) for the sentences as they stand, from 0 (dark) to 1 (as trained). A search that lets sentences leave moves
        # the second form too.
        self.gate: Tensor | None = None

    def light(self, q_BHTK: Tensor, memory: KeyValues, visible: Visible, grid: Grid) -> Tensor:
        """Attend with every head, dim each by its gate, concatenate, project."""
        drop = self.drop if self.training else 0.0
        if self.looks:
            k_BHSK, v_BHSK = (self._show(name, share_heads(x, self.num_heads)) for name, x in zip("kv", memory, strict=True))
            heads_BHTK = attend_in_stages(self._show("q", q_BHTK), k_BHSK, v_BHSK, visible, drop, self._show)
        else:
            heads_BHTK = attend(q_BHTK, memory.k, memory.v, visible, drop)
        if self.gate is not None:
            if self.gate.shape[-1:] != (self.num_heads,):
                raise ConfigError(f"a gate of {tuple(self.gate.shape)} is for other heads; here are {self.num_heads}, one light each")
            heads_BHTK = heads_BHTK * self.gate.to(heads_BHTK)[..., None, None]
        concat_BTD = heads_BHTK.transpose(1, 2).flatten(2)
        output: Tensor = self.out(grid.collect(concat_BTD))
        return output

    def _show(self, stage: str, value: Tensor) -> Tensor:
        for look in self.looks:
            instead = look(stage, value)
            value = value if instead is None else instead
        return value

    def _split(self, x_BTD: Tensor, per_group: int) -> tuple[Tensor, ...]:
        """(B, T, G * per_group * K) -> per_group tensors (B, G, T, K)."""
        x_BTGPK = x_BTD.view(*x_BTD.shape[:2], self.kv_heads, per_group, self.d_head)
        if x_BTD.shape[1] == 1:  # one position: where it lies is as good, and a cache copies it anyway
            return x_BTGPK.permute(3, 0, 2, 1, 4).unbind(0)
        heads: tuple[Tensor, ...] = _SplitHeads.apply(x_BTGPK)  # type: ignore[no-untyped-call]
        return heads


class _SplitHeads(torch.autograd.Function):
    """(B, T, G, P, K) -> P tensors (B, G, T, K) by one copy, which the products after it need anyway. The gradients are written straight
    back to their places, where autograd would first stack them and then copy."""

    @staticmethod
    def forward(ctx: Any, x_BTGPK: Tensor) -> tuple[Tensor, ...]:
        ctx.shape = x_BTGPK.shape
        return x_BTGPK.permute(3, 0, 2, 1, 4).contiguous().unbind(0)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        whole_BTGPK = gradients[0].new_empty(ctx.shape)
        for part, gradient_BGTK in enumerate(gradients):
            whole_BTGPK[:, :, :, part] = gradient_BGTK.transpose(1, 2)
        return whole_BTGPK


class SelfAttention(MultiHeadAttention):
    """Self-attention has q, k and v from the same stream, by one product. Rows of the weight go group by group [q ... q k v], so that a
    device which holds a share of the rows holds whole heads."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        self.qkv = nn.Linear(config.d_model, (self.num_heads + 2 * self.kv_heads) * self.d_head, bias=config.bias)

    def forward(self, x: Tensor, visible: Visible, grid: Grid, rotation: Rotation | None = None, cache: SelfCache | None = None) -> Tensor:
        """x is the stream of `grid`. With a cache, x holds the newest positions and what came before is remembered."""
        *queries, k_BGTK, v_BGTK = self._split(grid.spread(self.qkv(x)), self.num_heads // self.kv_heads + 2)
        q_BHTK = queries[0] if len(queries) == 1 else torch.stack(queries, dim=2).flatten(1, 2)
        if rotation is not None:
            q_BHTK, k_BGTK = (rotate(y, rotation, self.layout) for y in (q_BHTK, k_BGTK))
        memory = KeyValues(k_BGTK, v_BGTK) if cache is None else cache.extend(k_BGTK, v_BGTK)
        return self.light(q_BHTK, memory, visible, grid)


class Memory(NamedTuple):
    """Memory is what the encoder made of the source, for each decoder block to project by itself."""

    x: Tensor  # the stream of `grid`
    grid: Grid


class CrossAttention(MultiHeadAttention):
    """Cross-attention has q from the target, k and v from the encoder: projected here while training, or once for a whole translation."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        self.q = nn.Linear(config.d_model, self.num_heads * self.d_head, bias=config.bias)
        self.kv = nn.Linear(config.d_model, 2 * self.kv_heads * self.d_head, bias=config.bias)

    def project(self, memory: Memory) -> KeyValues:
        return KeyValues(*self._split(memory.grid.spread(self.kv(memory.x)), 2))

    def forward(self, x: Tensor, memory: Memory | KeyValues, visible: Visible, grid: Grid) -> Tensor:
        if isinstance(memory, Memory):
            memory = self.project(memory)
        q_BTD = grid.spread(self.q(x))
        q_BHTK = q_BTD.view(*q_BTD.shape[:2], self.num_heads, self.d_head).transpose(1, 2)
        return self.light(q_BHTK, memory, visible, grid)
