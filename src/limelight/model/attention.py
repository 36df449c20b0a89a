"""Scaled dot-product attention is computed here, under masks (section 3.2.1 and figure 2 of the paper).

Masks are built here and nowhere else. True means visible.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from limelight.model.dropout import dropout

Look = Callable[[str, Tensor], Tensor]


@dataclass(frozen=True)
class Visible:
    """Visible is what a query may look at: the keys that are pieces and not padding, and with `causal` only those up to its own place.

    `keys` is boolean (B, S), or (B, T, S) where queries differ, or None where every key is a piece. Kept apart from `causal` until it
    is needed, because the fused kernel hides later positions by itself and a full (T, S) mask of a long sequence would cost more
    memory than the model.
    """

    keys: Tensor | None = None
    causal: bool = False

    @classmethod
    def pieces(cls, ids: Tensor, pad_token: int) -> "Visible":
        """Padding mask from ids (B, S). A row of nothing but padding still sees its first cell, so that its softmax has a sum."""
        keys = ids != pad_token
        keys[:, 0] = True
        return cls(keys=keys)

    @classmethod
    def newborn(cls, sentences: int, width: int, device: torch.device) -> "Visible":
        """Each of `width` rows of a sentence sees the cell it has just written, and not those of the others."""
        return cls(keys=torch.eye(width, dtype=torch.bool, device=device).expand(sentences, width, width))

    def join(self, later: "Visible") -> "Visible":
        """These keys and then those: (B, T, S) and (B, T, R) -> (B, T, S + R)."""
        assert self.keys is not None and later.keys is not None
        return Visible(keys=torch.cat([self.keys, later.keys], dim=-1))

    def without(self, columns: Sequence[int] | Tensor) -> "Visible":
        """These keys (B, S), or those where a boolean (B, S) is True, are hidden from every query too. The caller leaves at least one, so
        that each softmax has a sum."""
        if isinstance(columns, Tensor):
            return Visible(keys=~columns if self.keys is None else self.keys & ~columns, causal=self.causal)
        if not columns:
            return self
        assert self.keys is not None
        keys = self.keys.clone()
        keys[:, list(columns)] = False
        return Visible(keys=keys, causal=self.causal)

    def select(self, rows: Tensor) -> "Visible":
        return self if self.keys is None else Visible(keys=self.keys.index_select(0, rows), causal=self.causal)

    def mask(self, queries: int, keys: int, device: torch.device) -> Tensor | None:
        """Boolean, broadcastable to (B, H, T, S), or None where all is visible. The last query stands at the last key."""
        mask = None
        if self.keys is not None:
            mask = self.keys[:, None, None, :] if self.keys.dim() == 2 else self.keys[:, None]
        if not self.causal or queries == 1:
            return mask
        up_to_itself = torch.ones(queries, keys, dtype=torch.bool, device=device).tril(keys - queries)
        return up_to_itself if mask is None else mask & up_to_itself


def pass_through(stage: str, value: Tensor) -> Tensor:
    """The look that leaves everything as it is."""
    return value


def attend_in_stages(
    q_BHTK: Tensor, k_BHSK: Tensor, v_BHSK: Tensor, visible: Visible, drop: float = 0.0, look: Look = pass_through
) -> Tensor:
    """Scaled dot-product attention (equation 1).

        Attention(Q, K, V) = softmax(Q K^T / sqrt(d_k)) V,   the softmax over visible keys only

    Returns (B, H, T, K). Each row of `weights` sums to 1 and is exactly 0 where a key is hidden. Every stage goes through
    `look`, which sees it and may put another tensor in its place.
    """
    scores_BHTS = look("scores", q_BHTK @ k_BHSK.mT)
    scaled_BHTS = look("scaled", scores_BHTS / math.sqrt(q_BHTK.shape[-1]))
    mask = visible.mask(q_BHTK.shape[2], k_BHSK.shape[2], q_BHTK.device)
    masked_BHTS = look("masked", scaled_BHTS if mask is None else scaled_BHTS.masked_fill(~mask, -torch.inf))
    # In float32 also for a bfloat16 stream: more exact, and on a CPU three times as fast, since torch vectorizes only that.
    softmax_BHTS = torch.softmax(masked_BHTS, dim=-1, dtype=torch.promote_types(masked_BHTS.dtype, torch.float32))
    weights_BHTS = look("weights", softmax_BHTS.to(v_BHSK.dtype))
    return look("heads", dropout(weights_BHTS, drop) @ v_BHSK)


def attend_fused(q_BHTK: Tensor, k_BGSK: Tensor, v_BGSK: Tensor, visible: Visible, drop: float = 0.0) -> Tensor:
    """The same equation in one kernel, which divides by sqrt(d_k) itself and never writes the (T, S) matrix down."""
    queries, keys, num_heads = q_BHTK.shape[2], k_BGSK.shape[2], q_BHTK.shape[1]
    alone = visible.causal and visible.keys is None and queries == keys
    mask = None if alone else visible.mask(queries, keys, q_BHTK.device)
    # Only the kernel of CUDA that takes no mask and no float32 knows groups; others would write the matrix down.
    if q_BHTK.device.type == "cpu" or mask is not None or q_BHTK.dtype == torch.float32:
        k_BGSK, v_BGSK = share_heads(k_BGSK, num_heads), share_heads(v_BGSK, num_heads)
    grouped = k_BGSK.shape[1] != num_heads
    return F.scaled_dot_product_attention(q_BHTK, k_BGSK, v_BGSK, attn_mask=mask, is_causal=alone, dropout_p=drop, enable_gqa=grouped)


def attend(q_BHTK: Tensor, k_BGSK: Tensor, v_BGSK: Tensor, visible: Visible, drop: float = 0.0) -> Tensor:
    """Attention by whichever of the two is faster here. k and v may have fewer heads G than q (grouped queries)."""
    if stages_are_faster(q_BHTK, k_BGSK):
        k_BHSK, v_BHSK = share_heads(k_BGSK, q_BHTK.shape[1]), share_heads(v_BGSK, q_BHTK.shape[1])
        return attend_in_stages(q_BHTK, k_BHSK, v_BHSK, visible, drop)
    return attend_fused(q_BHTK, k_BGSK, v_BGSK, visible, drop)


def share_heads(x_BGSK: Tensor, num_heads: int) -> Tensor:
    """Each of the G heads serves H / G neighbours: (B, G, S, K) -> (B, H, S, K)."""
    groups = x_BGSK.shape[1]
    return x_BGSK if groups == num_heads else x_BGSK.repeat_interleave(num_heads // groups, dim=1)


# Longest sequence for which the stages beat the fused kernel on a CPU, measured by `benchmarks/attention.py`: the kernel's
# backward in bfloat16 is slow. On accelerators the fused kernel is taken at every length.
CPU_STAGES_UP_TO = {"train, bfloat16": 512, "train, float32": 128, "translate": 32}
CPU_FEW = 16  # sentences: translating so few, the fused kernel is faster because it is one call


def stages_are_faster(q: Tensor, k: Tensor) -> bool:
    """The one place that chooses between the two: by device, length, number format, and whether a gradient is wanted."""
    if q.device.type != "cpu":
        return False
    if not q.requires_grad:
        # A product of one query in bfloat16 would first copy all keys, which the fused kernel does not.
        copies = q.dtype == torch.bfloat16 and q.shape[2] == 1
        return len(q) > CPU_FEW and not copies and max(q.shape[2], k.shape[2]) <= CPU_STAGES_UP_TO["translate"]
    job = "train, bfloat16" if q.dtype == torch.bfloat16 else "train, float32"
    return max(q.shape[2], k.shape[2]) <= CPU_STAGES_UP_TO[job]
