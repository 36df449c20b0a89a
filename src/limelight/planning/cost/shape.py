"""A `BatchShape` is the shape of a batch, as far as its cost depends on it.

All of the Transformer but attention works on each position by itself, so it costs by positions of the stream; attention costs by cells of
the grid (`model.grid`). Padded, the two are the same. Packed, the stream has no padding and is rounded up.
"""

from dataclasses import dataclass

# As in `model.grid`, which needs torch; tests hold them equal.
ROUND_TO = 256
NARROWEST = 16


@dataclass(frozen=True)
class BatchShape:
    rows: int
    S: int
    T: int
    source_stream: int
    target_stream: int
    is_packed: bool

    @classmethod
    def padded(cls, rows: int, S: int, T: int) -> "BatchShape":
        return cls(rows, S, T, rows * S, rows * T, False)

    @classmethod
    def packed(cls, rows: int, S: int, T: int, sources: int, targets: int) -> "BatchShape":
        """With `sources` and `targets` pieces in all. The stream has at least one position of filler."""
        return cls(rows, max(S, NARROWEST), max(T, NARROWEST), _round_up(sources), _round_up(targets), True)

    @property
    def source_cells(self) -> int:
        return self.rows * self.S

    @property
    def target_cells(self) -> int:
        return self.rows * self.T

    @property
    def looks(self) -> tuple[int, int, int]:
        """Pairs of a query and a key: in the encoder's attention, the decoder's, and between the two."""
        return self.rows * self.S**2, self.rows * self.T**2, self.rows * self.T * self.S


def _round_up(pieces: int) -> int:
    return (pieces + 1 + ROUND_TO - 1) // ROUND_TO * ROUND_TO
