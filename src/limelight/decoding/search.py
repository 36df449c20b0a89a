"""`search` turns a batch of requests into hypotheses, by the kind of search that the settings ask for."""

from collections.abc import Sequence

import numpy as np

from limelight.decoding.beam import Best, Choice, Refilled, beam
from limelight.decoding.config import SearchSettings
from limelight.decoding.constraints import Constrained
from limelight.decoding.greedy import greedy
from limelight.decoding.groups import Diverse
from limelight.decoding.marks import Placeholders
from limelight.decoding.record import Record
from limelight.decoding.sampling import sample
from limelight.decoding.steps import LATE, Outcome, Request, Specials, Steppable
from limelight.decoding.task import make_task
from limelight.errors import ConfigError

USUAL = Specials()


def search(
    model: Steppable,
    requests: Sequence[Request],
    settings: SearchSettings,
    specials: Specials = USUAL,
    lengths: Sequence[int] | None = None,
    record: Record | None = None,
) -> list[Outcome]:
    """One batch, translated as one. `lengths` fixes the number of pieces of each translation, for tests and benchmarks. What the
    search came by is noted in `record`. A sentence whose time is over leaves the batch, and its outcome is late."""
    if all(request.is_over() for request in requests):
        return [LATE] * len(requests)
    with np.errstate(all="ignore"):  # what is no number is found and told by the search itself
        found = _search(model, requests, settings, specials, lengths, record)
    return [LATE if request.is_over() else outcome for request, outcome in zip(requests, found, strict=True)]


def _search(
    model: Steppable,
    requests: Sequence[Request],
    settings: SearchSettings,
    specials: Specials,
    lengths: Sequence[int] | None,
    record: Record | None,
) -> list[Outcome]:
    if record is not None:
        record.begin(settings, specials)
    constrained = any(request.phrases for request in requests)
    if constrained and (settings.sampling is not None or settings.groups > 1):
        raise ConfigError("phrases that must occur need a plain beam; leave out sampling and groups, or leave out the phrases")
    task = make_task(requests, settings, specials, lengths)
    free = [i for i, request in enumerate(requests) if not request.phrases]
    if constrained and free:  # they have another beam, and no translation depends on its neighbours
        found: dict[int, Outcome] = {}
        for part in (free, sorted(set(range(len(requests))) - set(free))):
            own = None if lengths is None else [lengths[i] for i in part]
            noted = None if record is None else Record(record.most_cut)
            found |= zip(part, _search(model, [requests[i] for i in part], settings, specials, own, noted), strict=True)
            if record is not None and noted is not None:
                record.adopt(noted, part)
        return [found[i] for i in range(len(requests))]
    width = settings.beam if settings.sampling is None else settings.nbest
    marks = Placeholders(requests, width) if any(request.once for request in requests) else None
    if settings.sampling is not None:
        return sample(model, task, requests, settings, specials, marks)
    if settings.beam == 1 and not constrained and not settings.coverage_penalty:
        return greedy(model, task, settings, specials, marks, record)
    choice: Choice = Best(marks) if settings.patience is None else Refilled(specials.end, marks)
    if constrained:
        choice = Constrained(requests, settings.beam, specials.end, marks)
    elif settings.groups > 1:
        choice = Diverse(settings.groups, settings.diversity)
    return beam(model, task, settings, specials, choice, marks, record)
