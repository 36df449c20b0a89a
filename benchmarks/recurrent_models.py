"""What the Transformer replaced: LSTM encoder-decoders with attention, as good as two CPU cores allow. Not part of the package.

    memory = bidirectional LSTM, two layers                      (Bahdanau et al. 2015)
    h_t    = LSTM, two layers, over the target
    a_t    = softmax(h_t W_a memory^T)                           (Luong et al. 2015, eq. 8 "general")
    x_t    = tanh(W_c [a_t memory; h_t]),   logits = x_t E^T     (eq. 5; E is the one embedding, tied as in `small`)

`Recurrent` runs the decoder LSTM over all target positions in one call and attends afterwards. With input feeding (their section 3.3)
h_t also reads x_{t-1}, so that training goes step by step too; GNMT, which the paper compares with, feeds its context back as well.
Both are trained in bfloat16, which torch's LSTM takes on a CPU with AMX, in a third to half of the time of float32.
"""

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from limelight.model.dropout import dropout
from limelight.model.loss import Loss, smoothed_loss
from limelight.model.transformer import Batch

PAD = 0
D_MODEL = 256
# With this width the models have 7.42 and 7.88 million parameters, `small` 7.58; 7 × 64, since AMX multiplies in blocks of 32.
HIDDEN = 448


class Bidirectional(nn.Module):
    """One layer in both directions: (B, S, inputs) -> (B, S, outputs), the two side by side.

    The same as `nn.LSTM(bidirectional=True)` on a packed sequence, which torch runs without oneDNN on a CPU: here the second
    direction is an LSTM over rows that were turned round, each within its own length.
    """

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.ahead = nn.LSTM(inputs, outputs // 2, batch_first=True)
        self.back = nn.LSTM(inputs, outputs // 2, batch_first=True)

    def forward(self, x_BSD: Tensor, turned_BS: Tensor) -> Tensor:
        ahead_BSH, _ = self.ahead(x_BSD)
        back_BSH, _ = self.back(pick(x_BSD, turned_BS))
        return torch.cat([ahead_BSH, pick(back_BSH, turned_BS)], dim=-1)


def turned(lengths_B: Tensor, width: int) -> Tensor:
    """turned([2, 3], 3) -> [[1, 0, 2], [2, 1, 0]]: the columns of each row backwards, its padding where it was."""
    columns = torch.arange(width)
    return torch.where(columns < lengths_B[:, None], lengths_B[:, None] - 1 - columns, columns)


def pick(x_BSD: Tensor, columns_BS: Tensor) -> Tensor:
    return x_BSD.gather(1, columns_BS[..., None].expand(-1, -1, x_BSD.shape[2]))


@dataclass
class Memory:
    """The source as the decoder looks at it. Both projections are made once: W_a into the keys, the half of W_c into the values."""

    keys: Tensor  # (B, S, H)
    values: Tensor  # (B, S, D)
    visible: Tensor  # (B, S)

    def select(self, rows: Tensor) -> "Memory":
        return Memory(self.keys[rows], self.values[rows], self.visible[rows])


@dataclass
class RecurrentState:
    """What the decoder remembers between steps: h and c of each layer (B, H), and the last x (B, D)."""

    memory: Memory
    layers: list[tuple[Tensor, Tensor]]
    fed: Tensor

    def select(self, sentences: Tensor) -> None:
        self.memory = self.memory.select(sentences)
        self.layers = [(h[sentences], c[sentences]) for h, c in self.layers]
        self.fed = self.fed[sentences]

    def reorder(self, rows: Tensor) -> None:
        """For searches with several rows a sentence, which this model does not offer."""


class Recurrent(nn.Module):
    """The same doors as `limelight.model.transformer.Transformer`: `loss` for training, `start` and `step` for a search."""

    def __init__(self, vocab_size: int, input_feeding: bool, d_model: int = D_MODEL, hidden: int = HIDDEN, drop: float = 0.1) -> None:
        super().__init__()
        self.input_feeding, self.drop = input_feeding, drop
        self.embedding = nn.Parameter(torch.randn(vocab_size, d_model) / d_model**0.5)
        self.encoder = nn.ModuleList([Bidirectional(d_model, hidden), Bidirectional(hidden, hidden)])
        fed = d_model if input_feeding else 0
        self.decoder = nn.ModuleList([nn.LSTM(d_model + fed, hidden, batch_first=True), nn.LSTM(hidden, hidden, batch_first=True)])
        self.keys = nn.Linear(hidden, hidden, bias=False)  # W_a
        self.values = nn.Linear(hidden, d_model, bias=False)  # W_c, the half that reads the memory
        self.own = nn.Linear(hidden, d_model, bias=False)  # W_c, the half that reads h
        for module in self.modules():
            if isinstance(module, nn.LSTM):  # the second quarter of the biases is the forget gate: remember at first
                nn.init.ones_(module.bias_ih_l0.data[module.hidden_size : 2 * module.hidden_size])

    def loss(self, batch: Batch, smoothing: float = 0.0) -> Loss:
        # A packed batch has columns that hold padding alone, for the Transformer's sake; here each would be a step.
        state = self._read(batch.source[:, : batch.source_grid.longest])
        y_BTD = self._embed(batch.target_in[:, : batch.target_grid.longest])
        x_BTD = self._decode_fed(y_BTD, state) if self.input_feeding else self._decode(y_BTD, state)
        x_BTD = F.pad(x_BTD, (0, 0, 0, batch.target_in.shape[1] - x_BTD.shape[1]))
        # Logits of padding are as costly as others: only the pieces go on, as in a packed batch of the Transformer.
        target = batch.target_grid.take(batch.target_out)
        counted = batch.target_grid.is_piece(target.device)
        assert counted is not None, "batches are packed here"
        return smoothed_loss(batch.target_grid.collect(x_BTD), self.embedding, None, target, counted, smoothing)

    def start(self, source: Tensor, width: int = 1) -> RecurrentState:
        assert width == 1, "greedy only"
        return self._read(source)

    def step(self, token: Tensor, state: RecurrentState) -> tuple[Tensor, RecurrentState]:
        """One target id per row (B,) -> log-probabilities of the next (B, V)."""
        y_BD = self._embed(token)
        inputs = torch.cat([y_BD, state.fed], dim=-1) if self.input_feeding else y_BD
        for number, lstm in enumerate(self.decoder):
            h, c = state.layers[number]
            read_BG = F.linear(inputs, lstm.weight_ih_l0, lstm.bias_ih_l0)
            inputs, c = cell(read_BG + F.linear(h, lstm.weight_hh_l0, lstm.bias_hh_l0), c)
            state.layers[number] = (inputs, c)
        state.fed = self._attend(inputs[:, None], state.memory).squeeze(1)
        return F.linear(state.fed, self.embedding).float().log_softmax(dim=-1), state

    def _embed(self, ids: Tensor) -> Tensor:
        return self._drop(F.embedding(ids, self.embedding) * self.embedding.shape[1] ** 0.5)

    def _drop(self, x: Tensor) -> Tensor:
        return dropout(x, self.drop if self.training else 0.0)

    def _read(self, source: Tensor) -> RecurrentState:
        """The encoder. The decoder's h starts from where the encoder's layers ended, both directions side by side; its c from 0."""
        visible_BS = source != PAD
        lengths_B = visible_BS.sum(1)
        turned_BS = turned(lengths_B, source.shape[1])
        x_BSH, ends = self._embed(source), []
        for number, layer in enumerate(self.encoder):
            x_BSH = layer(self._drop(x_BSH) if number else x_BSH, turned_BS)
            half = x_BSH.shape[2] // 2
            last_B = (lengths_B - 1)[:, None, None].expand(-1, 1, half)
            h_BH = torch.cat([x_BSH[..., :half].gather(1, last_B).squeeze(1), x_BSH[:, 0, half:]], dim=1)
            ends.append((h_BH, torch.zeros_like(h_BH)))
        memory = Memory(self.keys(x_BSH), self.values(x_BSH), visible_BS)
        return RecurrentState(memory, ends, x_BSH.new_zeros(len(source), self.embedding.shape[1]))

    def _decode(self, y_BTD: Tensor, state: RecurrentState) -> Tensor:
        """All target positions of a layer in one call."""
        for number, (lstm, (h_BH, c_BH)) in enumerate(zip(self.decoder, state.layers, strict=True)):
            y_BTD, _ = lstm(self._drop(y_BTD) if number else y_BTD, (h_BH[None], c_BH[None]))
        return self._drop(self._attend(y_BTD, state.memory))

    def _decode_fed(self, y_BTD: Tensor, state: RecurrentState) -> Tensor:
        """Step by step, since each step reads the x of the one before. What does not depend on it is computed at once."""
        first, second = self.decoder
        memory, (rows, steps, split) = state.memory, y_BTD.shape
        hidden_B1S = torch.zeros_like(memory.keys[..., 0]).masked_fill(~memory.visible, -torch.inf)[:, None]
        bias_BTG = (second.bias_ih_l0 + second.bias_hh_l0).expand(rows, steps, -1)
        ahead_BTG = F.linear(y_BTD, first.weight_ih_l0[:, :split], first.bias_ih_l0 + first.bias_hh_l0)
        gates1 = EveryStep(ahead_BTG, torch.cat([first.weight_ih_l0[:, split:], first.weight_hh_l0], dim=1).mT)
        gates2 = EveryStep(bias_BTG, torch.cat([second.weight_ih_l0, second.weight_hh_l0], dim=1).mT)
        scores = EveryStep(hidden_B1S.expand(-1, steps, -1), memory.keys.mT)
        context = EveryStep(torch.zeros_like(y_BTD), memory.values)
        own = EveryStep(torch.zeros_like(y_BTD), self.own.weight.mT)
        fed, xs, ((h1, c1), (h2, c2)) = state.fed, [], state.layers
        for _ in range(steps):
            h1, c1 = cell(gates1(torch.cat([fed, h1], dim=1)), c1)
            h2, c2 = cell(gates2(torch.cat([self._drop(h1), h2], dim=1)), c2)
            weights_BS = scores(h2).float().softmax(dim=-1).to(h2.dtype)
            fed = self._drop(torch.tanh(context(weights_BS) + own(h2)))
            xs.append(fed)
        return torch.stack(xs, dim=1)

    def _attend(self, h_BTH: Tensor, memory: Memory) -> Tensor:
        scores_BTS = (h_BTH @ memory.keys.mT).float().masked_fill(~memory.visible[:, None], -torch.inf)
        weights_BTS = scores_BTS.softmax(dim=-1).to(h_BTH.dtype)
        return torch.tanh(weights_BTS @ memory.values + self.own(h_BTH))


def cell(gates_BG: Tensor, c_BH: Tensor) -> tuple[Tensor, Tensor]:
    """The gates of an LSTM (Hochreiter and Schmidhuber 1997) before their activation, and c -> the next h and c, each (B, H)."""
    i, f, g, o = gates_BG.chunk(4, dim=1)
    c_BH = f.sigmoid() * c_BH + i.sigmoid() * g.tanh()
    return o.sigmoid() * c_BH.tanh(), c_BH


class EveryStep:
    """y_t = ahead_t + x_t M, step by step with the same M (I, O) or (B, I, O), whose gradient is one product after all steps.

    Autograd would make a gradient as large as M in every step and add them up, in bfloat16 with a rounding each time.
    """

    def __init__(self, ahead_BTO: Tensor, matrix: Tensor) -> None:
        self.inputs: list[Tensor] = []
        self.matrix = matrix.detach()
        self.ahead = iter(_Collect.apply(ahead_BTO, matrix, self.inputs).unbind(1))

    def __call__(self, x_BI: Tensor) -> Tensor:
        self.inputs.append(x_BI.detach())
        if self.matrix.dim() == 2:
            return torch.addmm(next(self.ahead), x_BI, self.matrix)
        return torch.baddbmm(next(self.ahead)[:, None], x_BI[:, None], self.matrix).squeeze(1)


class _Collect(torch.autograd.Function):
    """Passes `ahead` on. Its gradient is that of every y_t, which comes when all steps have had theirs: time to make the one of M."""

    @staticmethod
    def forward(ctx: Any, ahead_BTO: Tensor, matrix: Tensor, inputs: list[Tensor]) -> Tensor:
        ctx.inputs, ctx.batched = inputs, matrix.dim() == 3
        return ahead_BTO.clone()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None]:
        x_BTI, y_BTO = torch.stack(ctx.inputs, dim=1), gradients[0]
        if ctx.batched:
            return y_BTO, x_BTI.mT @ y_BTO, None
        return y_BTO, x_BTI.flatten(0, 1).mT @ y_BTO.flatten(0, 1), None
