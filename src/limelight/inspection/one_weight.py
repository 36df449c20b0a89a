"""One attention weight is written out: the products, their sum, the scale, the mask, the softmax."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

SHOWN = 8  # products written out one by one; the others are added up


@dataclass(frozen=True)
class Explanation:
    """An explanation is of one cell: weight = exp(scaled - highest) / total, scaled = sum(products) / (sqrt(d_k) * temperature).

    `highest` is the row's largest and only keeps exp small; `total` is the sum over all keys that the row sees.
    A weight that was moved by a pin is not this quotient, and `pinned` says so.
    """

    head: str  # cross.2.1
    row: int
    column: int
    query: str
    key: str
    q: list[float]
    k: list[float]
    products: list[float]
    score: float
    temperature: float
    scaled: float
    masked: bool
    highest: float
    exponential: float
    total: float
    weight: float

    @property
    def softmax(self) -> float:
        return self.exponential / self.total

    @property
    def pinned(self) -> bool:
        return abs(self.softmax - self.weight) > 1e-4

    def __str__(self) -> str:
        width = len(self.products)
        largest = sorted(range(width), key=lambda i: -abs(self.products[i]))[:SHOWN]
        line = "    [{:>3}] {:>9.4f} * {:>9.4f} = {:>9.4f}"
        terms = [line.format(i, self.q[i], self.k[i], self.products[i]) for i in sorted(largest)]
        if rest := width - len(largest):
            left = sum(self.products) - sum(self.products[i] for i in largest)
            terms.append(f"    and {rest} more, together {left:>16.4f}")
        softly = f" * {self.temperature:g}" if self.temperature != 1 else ""
        hidden = "hidden: -inf" if self.masked else "visible, nothing changes"
        power = "-inf" if self.masked else f"{self.scaled:.4f} - {self.highest:.4f}"
        looks = f"row {self.row}, which writes {self.query!r},"  # a row of the decoder looks before its piece is there
        if self.head.startswith("enc"):
            looks = f"{self.query!r} (row {self.row})"
        lines = [
            f"{self.head}: how much {looks} looks at {self.key!r} (column {self.column})",
            f"  q . k, the products of {width} numbers{f' ({len(largest)} largest)' if rest else ''}:",
            *terms,
            f"  score    = {self.score:.4f}",
            f"  scaled   = {self.score:.4f} / (sqrt({width}){softly}) = {self.scaled:.4f}",
            f"  mask     : {hidden}",
            f"  softmax  = exp({power}) / {self.total:.4f} = {self.exponential:.4f} / {self.total:.4f} = {self.softmax:.4f}",
            f"  weight   = {self.weight:.4f}{'   (moved by a pin)' if self.pinned else ''}",
        ]
        return "\n".join(lines)


def explain(
    head: str,
    pieces: tuple[str, str],
    stages: Sequence[npt.NDArray[np.generic]],
    cell: tuple[int, int],
    temperature: float,
) -> Explanation:
    """From q, k, scores, scaled, masked and attn of one head: (T, K), (S, K), and (T, S) each."""
    (q, k, scores, scaled, masked, weights), (row, column) = (np.asarray(stage, np.float64) for stage in stages), cell
    highest = float(masked[row].max())
    exponentials = np.exp(masked[row] - highest)
    return Explanation(
        head=head,
        row=row,
        column=column,
        query=pieces[0],
        key=pieces[1],
        q=q[row].tolist(),
        k=k[column].tolist(),
        products=(q[row] * k[column]).tolist(),
        score=float(scores[row, column]),
        temperature=temperature,
        scaled=float(scaled[row, column]),
        masked=math.isinf(masked[row, column]),
        highest=highest,
        exponential=float(exponentials[column]),
        total=float(exponentials.sum()),
        weight=float(weights[row, column]),
    )
