"""The best weights of a run are kept on disk, to choose from and to average:

RUN/best/step-0001200.safetensors     the weights of a validation that was among the best
RUN/best/index.json                   every score that was the best of its time; which weights are kept, with their sha256
"""

import logging
import math
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import torch
from pydantic import Field
from torch import Tensor

from limelight.bundle.manifest import seal
from limelight.config import Settings
from limelight.errors import ConfigError, ModelFileError
from limelight.files import force_to_disk, sha256_of, stamp_of, write_whole
from limelight.training.checkpoints.folder import name_of, unseal
from limelight.training.checkpoints.tensors import read_tensors, write_tensors

FORMAT = 1
INDEX = "index.json"

logger = logging.getLogger(__name__)


class Offer(Settings):
    step: int = Field(ge=0)
    score: float
    sha256: str | None = None  # of the weights, while they are kept

    @property
    def rank(self) -> tuple[float, int]:
        """Smaller is better. Of equal scores the earlier step is."""
        return -self.score, self.step


class Index(Settings):
    format: int
    offers: tuple[Offer, ...]
    checksum: str


class BestWeights:
    def __init__(self, folder: Path, most: int, latest: bool = False) -> None:
        """`latest`: the latest weights stay in place of the best."""
        if most < 1:
            raise ValueError(f"most={most}: at least the best is kept")
        self.folder = folder
        self.most, self.latest = most, latest
        self._offers = {offer.step: offer for offer in _read_index(folder)}
        self._sound: dict[int, tuple[object, bool]] = {}  # by step: which file was looked at, and whether it was whole

    def offer(self, step: int, score: float, weights: Mapping[str, Tensor]) -> bool:
        """True if no score of the run was better. The weights stay if they are among the best; then the worst leaves.

        A file is deleted only after its successor is on disk, and listed. On a disk that is full those before stay, and a warning says so.
        """
        if not math.isfinite(score):
            logger.warning("step %d has the score %s; its weights are not kept", step, score)
            return False
        new = Offer(step=step, score=score)
        others = [offer for offer in self._whole() if offer.step != step]
        rivals = sorted([new, *others], key=lambda offer: (-offer.step if self.latest else 0, *offer.rank))[: self.most]
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            if new in rivals:
                path = self._path(step)
                write_tensors(path, weights)
                rivals[rivals.index(new)] = new = new.changed(sha256=sha256_of(path))
            self._offers[step] = new
            self._keep(rivals)
        except OSError as error:  # weights less to choose from; the run is worth more
            logger.warning("step %d: its weights are not kept: %s", step, error)
            self._offers.setdefault(step, new)
        return min(self._offers.values(), key=lambda offer: offer.rank).step == step

    @property
    def best(self) -> tuple[int, float] | None:
        """Step and score of the best weights that can be loaded."""
        return next(iter(self.scores()), None)

    def scores(self) -> list[tuple[int, float]]:
        """Step and score of all weights that can be loaded, the best first."""
        return [(offer.step, offer.score) for offer in sorted(self._whole(), key=lambda offer: offer.rank)]

    def load(self, step: int) -> dict[str, Tensor]:
        """Reads from the disk and verifies each time."""
        self._sound.pop(step, None)
        if step not in [offer.step for offer in self._whole()]:
            others = ", ".join(str(step) for step, _ in self.scores()) or "none"
            raise ModelFileError(f"{self._path(step)} is not kept, or damaged; steps that can be loaded: {others}")
        return read_tensors(self._path(step))

    def mean(self, count: int | None = None) -> dict[str, Tensor]:
        """mean_i = 1/n sum over the `count` best kept weights w of w_i (None: all), added in float64 in the order of their steps, then
        rounded to float32."""
        self._sound.clear()
        steps = sorted(step for step, _ in self.scores()[:count])
        if not steps:
            raise ModelFileError(f"{self.folder} holds no weights to average; validate at least once before")
        total: dict[str, Tensor] = {}
        for step in steps:
            weights = read_tensors(self._path(step))
            if total and {n: w.shape for n, w in weights.items()} != {n: w.shape for n, w in total.items()}:
                raise ModelFileError(
                    f"{self._path(step)} holds weights of another model than step {steps[0]} does; remove {self.folder} and train again"
                )
            for name, weight in weights.items():
                total[name] = total[name].add_(weight) if name in total else weight.double()
        return {name: (sum_ / len(steps)).to(torch.float32) for name, sum_ in total.items()}

    def forget_after(self, step: int) -> None:
        """For a run that goes on from `step`: what came later will come again."""
        if any(other > step for other in self._offers):
            self._offers = {other: offer for other, offer in self._offers.items() if other <= step}
            try:
                self._keep(self._whole())
            except OSError as error:  # still listed on disk; forgotten by this process, and by the next that can write
                logger.warning("%s cannot be brought up to date: %s", self.folder / INDEX, error)

    def _keep(self, chosen: list[Offer]) -> None:
        """List these, then delete what is not listed, leftovers of crashed writes too."""
        kept = {offer.step for offer in chosen}
        best, self._offers, before = math.inf, {}, sorted(self._offers.items())
        for step, offer in before:
            if step in kept:
                self._offers[step] = offer
            elif -offer.score < best:  # the best of its time, by which later ones are judged when the run goes back
                self._offers[step] = offer.changed(sha256=None)
            best = min(best, -offer.score)
        offers = [offer.model_dump() for offer in self._offers.values()]
        write_whole(self.folder / INDEX, seal({"format": FORMAT, "offers": offers}))
        force_to_disk(self.folder)
        listed = {INDEX, *(self._path(step).name for step in kept)}
        for path in self.folder.iterdir():
            if path.name not in listed and (path.suffix == ".safetensors" or path.name.startswith(".")):
                path.unlink(missing_ok=True)

    def _whole(self) -> list[Offer]:
        return [offer for offer in self._offers.values() if offer.sha256 is not None and self._is_whole(offer)]

    def _is_whole(self, offer: Offer) -> bool:
        """Hashed once for each file that takes the place: `best` may be asked at every step."""
        path = self._path(offer.step)
        stamp = stamp_of(path)
        known = self._sound.get(offer.step)
        if known is None or known[0] != (stamp, offer.sha256):
            whole = False
            with suppress(OSError):  # of a file that cannot be read any more: it is not whole
                whole = stamp is not None and sha256_of(path) == offer.sha256
            if not whole:
                logger.warning("%s is %s; it is left out", path, "missing" if stamp is None else "damaged")
            self._sound[offer.step] = known = ((stamp, offer.sha256), whole)
        return known[1]

    def _path(self, step: int) -> Path:
        return self.folder / f"{name_of(step)}.safetensors"


def _read_index(folder: Path) -> tuple[Offer, ...]:
    path = folder / INDEX
    try:
        value = unseal(path.read_bytes())
        if value.get("format") != FORMAT:
            raise ValueError(f"it has format {value.get('format')}, and this limelight reads format {FORMAT}")
        return Index(**value).offers
    except FileNotFoundError:
        return ()
    except (OSError, ValueError, ConfigError) as error:
        logger.warning("%s cannot be used, and the weights beside it are left out: %s", path, error)
        return ()
