"""Figures of the pages on attention, on heads and on positions."""

from html import escape

import numpy as np
import torch
from matplotlib.patches import Rectangle

from figures_style import SECOND, SENTENCE, SPOT, Drawn, figure, matrix, trace, translator
from limelight.model.attention import Visible, attend_in_stages
from limelight.model.config import ModelConfig
from limelight.model.positions import sinusoids
from limelight.model.transformer import Transformer

HEADS_LOOKED_AT = 1  # of the decoder's first layer


def pieces_and_ids() -> Drawn:
    """A text as pieces and as ids."""
    tokens = trace().source.tokens
    drawn, (place,) = figure(0.9 * len(tokens) + 1.2, 1.2)
    for row, (name, values) in enumerate({"pieces": [t.piece for t in tokens], "ids": [str(t.id) for t in tokens]}.items()):
        place.text(-0.2, -row, name, ha="right", va="center", color="#888888")
        for at, value in enumerate(values):
            place.text(at + 0.5, -row, value, ha="center", va="center", fontsize=10)
            place.add_patch(Rectangle((at + 0.04, -row - 0.4), 0.92, 0.8, fill=False, edgecolor=SPOT if row == 0 else "#888888"))
    place.set(xlim=(-1.2, len(tokens)), ylim=(-1.6, 0.6))
    place.set_axis_off()
    caption = (
        f"<i>{SENTENCE}</i> as the number translator of these pages reads it: {len(tokens)} pieces, "
        "the end among them. ▁ stands for a space."
    )
    return Drawn(drawn, caption, "A sentence cut into pieces, with their ids")


def stages_of_attention() -> Drawn:
    """Scores, scaled, masked, weights: the four matrices of one head of the decoder's self-attention."""
    seen, pieces = trace(), trace().target.inputs
    drawn, axes = figure(8.6, 2.7, columns=4)
    names = {"scores": "q kᵀ", "scaled": "/ √K", "masked": "masked", "attn": "softmax"}
    for at, (place, (stage, title)) in enumerate(zip(axes, names.items(), strict=True)):
        values = np.array(seen[f"dec.0.self.{stage}"][HEADS_LOOKED_AT], dtype=float)
        numbers = "{:.2f}" if stage == "attn" else "{:.1f}"
        matrix(
            place,
            np.where(np.isfinite(values), values, np.nan) if stage == "masked" else values,
            pieces if at == 0 else (),
            pieces,
            None,
        )
        _numbered(place, values, numbers)
        place.set_title(title, pad=10)
    rows = np.array(seen["dec.0.self.attn"][HEADS_LOOKED_AT]).sum(-1)
    caption = (
        f"The decoder of the number translator reads <i>{escape(' '.join(pieces))}</i>. One head of its first "
        f"layer, four stages. Rows look, columns are "
        f"looked at. After the mask a piece sees itself and what came before. The rows of the last matrix sum to "
        f"{rows.min():.4f} at least and "
        f"{rows.max():.4f} at most."
    )
    return Drawn(drawn, caption, "Four matrices: scores, scaled scores, masked scores and weights of one head")


def _numbered(place, values, form) -> None:  # type: ignore[no-untyped-def]
    shown = values[np.isfinite(values)]
    middle = (shown.min() + shown.max()) / 2
    for (row, column), value in np.ndenumerate(values):
        hidden = not np.isfinite(value)
        colour = "#888888" if hidden else "#ffffff" if value < middle else "#000000"
        place.text(
            column + 0.5,
            row + 0.5,
            "−∞" if hidden else form.format(value),  # noqa: RUF001
            ha="center",
            va="center",
            fontsize=7,
            color=colour,
        )


def why_scaled() -> Drawn:
    """The largest weight of a row, with and without the division, for growing width of a head."""
    widths, keys, queries = [4, 8, 16, 32, 64, 128, 256, 512], 16, 256
    with_scale, without = [], []
    generator = torch.Generator().manual_seed(1)
    for width in widths:
        q, k = (torch.randn(1, 1, n, width, generator=generator) for n in (queries, keys))
        stages: dict[str, torch.Tensor] = {}

        def look(stage: str, value: torch.Tensor, into: dict[str, torch.Tensor] = stages) -> torch.Tensor:
            into[stage] = value
            return value

        attend_in_stages(q, k, k, Visible(), look=look)
        with_scale.append(float(stages["weights"].amax(-1).mean()))
        without.append(float(torch.softmax(stages["scores"], -1).amax(-1).mean()))
    drawn, (place,) = figure(5.6, 2.8)
    place.plot(widths, without, marker="o", color=SECOND, label="softmax(q kᵀ)")
    place.plot(widths, with_scale, marker="o", color=SPOT, label="softmax(q kᵀ / √K)")
    place.axhline(1 / keys, color="#888888", linewidth=0.8, linestyle=":")
    place.set(xscale="log", xticks=widths, xlabel="width of a head, K", ylabel="largest of 16 weights", ylim=(0, 1.02))
    place.set_xticks(widths, [str(width) for width in widths])
    place.minorticks_off()
    place.legend()
    caption = (
        f"Random q and k with numbers of order 1, {keys} keys, the mean of {queries} queries. At K = 512 the "
        f"largest weight is "
        f"{without[-1]:.2f} without the division: the softmax has made its choice before anything was learnt. With "
        f"it, {min(with_scale):.2f} to "
        f"{max(with_scale):.2f} at all widths; the dotted line is 1/{keys}, no choice at all."
    )
    return Drawn(drawn, caption, "The largest attention weight grows with the width unless scores are divided by its root")


def all_heads() -> Drawn:
    """The cross-attention of every layer and head."""
    seen = trace()
    weights = seen.attention["cross"]
    layers, heads = weights.shape[:2]
    rows, columns = [token.piece for token in seen.target.tokens], [token.piece for token in seen.source.tokens]
    drawn, axes = figure(1.9 * heads + 0.6, 2.0 * layers + 0.5, columns=heads, rows=layers)
    for at, place in enumerate(axes):
        layer, head = divmod(at, heads)
        matrix(place, weights[layer, head], rows if head == 0 else (), columns if layer == 0 else (), vmin=0, vmax=1)
        place.set_xlabel(f"cross.{layer}.{head}")
    caption = (
        f"Where each piece of <i>{seen.target.text}</i> (rows) looked in <i>{SENTENCE}</i> (columns): {layers} "
        f"layers of {heads} heads, dark 0, "
        f"bright 1. The head whose weights align best is <code>{seen.align.head}</code>."
    )
    return Drawn(drawn, caption, "Small maps of the cross-attention of every head")


def heads_muted() -> Drawn:
    """What each head is worth: the log-probability of the same translation without it."""
    seen = trace()
    names = [head.id for head in seen.heads if head.id.startswith("cross")]
    costs = []
    for name in names:
        changed = translator().trace(SENTENCE, target=seen.target.text, gates={name: 0.0})
        costs.append(changed.target.logp - seen.target.logp)
    together = translator().trace(SENTENCE, target=seen.target.text, gates={"cross.*.*": 0.0}).target.logp - seen.target.logp
    drawn, (place,) = figure(5.6, 2.6)
    place.barh(names, costs, color=SPOT)
    place.invert_yaxis()
    place.axvline(0, color="#888888", linewidth=0.8)
    place.set(xlabel="change of the log-probability of the translation, in nats")
    worst = names[int(np.argmin(costs))]
    caption = (
        f"Each head of the cross-attention muted alone (its gate at 0), and the same translation scored again. The "
        f"dearest is <code>{worst}</code>, "
        f"{min(costs):.2f}. All of them muted at once: {together:.1f}, since then nothing tells the decoder what "
        f"the source was."
    )
    return Drawn(drawn, caption, "Bars: the loss of log-probability when a head is muted")


def table_of_positions() -> Drawn:
    """The sinusoids, and how alike two positions are."""
    d_model, length = 64, 50
    table = sinusoids(length, d_model).numpy()
    drawn, (left, right) = figure(8.4, 3.0, columns=2, width_ratios=[1.25, 1])
    left.imshow(table.T, cmap="cividis", vmin=-1, vmax=1, aspect="auto", interpolation="nearest")  # one picture, not 3,200 squares
    left.set(xlabel="position", ylabel="number of the vector")
    for start, colour in ((10, SPOT), (25, SECOND)):
        right.plot(
            np.arange(-10, 25),
            [table[start] @ table[start + k] for k in range(-10, 25)],
            color=colour,
            label=f"from position {start}",
            linestyle="-" if start == 10 else "--",
        )
    right.set(xlabel="distance k", ylabel="PE(pos) · PE(pos + k)")
    right.legend()
    gap = max(abs(float(table[10] @ table[10 + k] - table[25] @ table[25 + k])) for k in range(-10, 25))
    caption = (
        f"Left: the vectors of {length} positions, {d_model} numbers each; fast waves above, slow ones below. "
        f"Right: the product of two of them "
        f"depends on their distance alone. The two curves lie on each other; they differ by {gap:.0e} at most."
    )
    return Drawn(drawn, caption, "Sinusoidal positions as a picture, and their products by distance")


def order_lost() -> Drawn:
    """Without positions an encoder gives the same for shuffled pieces, shuffled alike; with them it does not."""
    ids = torch.tensor([[5, 9, 7, 11, 6, 8]])
    order = torch.tensor([3, 0, 5, 1, 4, 2])
    drawn, (place,) = figure(5.2, 1.9)
    found = {}
    for kind in ("none", "sinusoidal", "rotary"):
        torch.manual_seed(3)
        config = ModelConfig.preset("toy", 14, positions="sinusoidal" if kind == "none" else kind, dropout=0.0)
        model = Transformer(config).eval()
        if kind == "none":
            model.source_positions.table.zero_()
        with torch.inference_mode():
            straight, shuffled = model.encode(ids), model.encode(ids[:, order])
        found[kind] = float((straight[:, order] - shuffled).norm() / straight.norm())
    place.barh(list(found), list(found.values()), color=[SECOND, SPOT, SPOT])
    place.invert_yaxis()
    place.set(xlabel="difference, as a part of the memory's length", xlim=(0, max(found.values()) * 1.15))
    caption = (
        "Six pieces through a random encoder, and the same six in another order. How far apart are the two "
        "memories, once the rows are put back "
        f"in place? Without positions {found['none']:.0e}, which is rounding: the encoder cannot know the order. "
        f"Sinusoidal "
        f"{found['sinusoidal']:.2f}, rotary {found['rotary']:.2f}."
    )
    return Drawn(drawn, caption, "Bars: how much the order of pieces matters without and with positions")
