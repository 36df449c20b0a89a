"""Rules give advice after a run; each says what it saw, in figures, and what usually helps."""

from collections.abc import Callable, Sequence
from typing import Final

from limelight.corpus.cleaning.reasons import Reason
from limelight.corpus.report.report import totals
from limelight.decoding.config import SearchSettings
from limelight.evaluation.suspicions import SuspicionKind
from limelight.reporting.units import figure, hundredths
from limelight.training.events import DirectionScore, ValidReport
from limelight.training.report.advice_learning import (
    NAMES,
    Advice,
    another_kind,
    is_too_short,
    overfits,
    still_improving,
    too_short,
    underfits,
    unstable,
)
from limelight.training.report.attention import Attention
from limelight.training.report.run_record import TITLES, RunRecord


def advise(record: RunRecord, looked: Attention | None = None) -> list[Advice]:
    """Serious ones first. `looked`: where its heads looked, if that was traced."""
    found = [advice for rule in RULES if (advice := rule(record)) is not None]
    if not is_too_short(record):  # of what it learnt there is nothing to say yet
        found += [advice for rule in LEARNT if (advice := rule(record)) is not None]
        found += _resting(looked)
        found += _suspicious(record)
    return sorted(found, key=lambda advice: not advice.serious)


def _resting(looked: Attention | None) -> list[Advice]:
    if looked is None or 2 * len(looked.resting) <= (of := len(looked.last[0].heads)):
        return []
    heads = max(1, looked.last[0].model.heads // 2)
    seen = f"{len(looked.resting)} of {of} heads rest: they look at the end or the start and nowhere else"
    do = f"fewer and wider heads may do as well (model.num_heads={heads}); measure it with a run of its own"
    return [Advice("resting_heads", seen, do)]


PADDING: Final = 0.15


def _padding(record: RunRecord) -> Advice | None:
    if record.padding is None or record.padding <= PADDING:
        return None
    window = record.recipe.batch.window_rows if record.recipe else None
    more = f"batch.window={4 * window}, now {window}" if window else "a larger batch.window"
    seen = f"{hundredths(record.padding)} of the cells of the batches hold nothing"
    return Advice("padding", seen, f"sort more pairs together ({more}), or leave out the few longest (batch.longest)")


WAITING: Final = 0.10


def _waiting(record: RunRecord) -> Advice | None:
    if record.waiting is None or record.waiting <= WAITING:
        return None
    workers = record.recipe.machine.workers if record.recipe else None
    do = f"more processes that make batches: machine.workers={2 * (workers or 1)}{f', now {workers}' if workers else ''}"
    if record.recipe and record.recipe.batch.sampling is not None:
        do += "; segmenting the text anew each time (batch.sampling) is what takes them long"
    return Advice("waiting", f"{hundredths(record.waiting)} of the training time went by waiting for data", do)


FALL: Final = 0.85  # of the chrF of all sentences; those whose interval reaches it may be chance


def _long_sentences(record: RunRecord) -> Advice | None:
    whole = record.scores.of("chrF") if record.scores else None
    buckets = [bucket for bucket in record.scores.buckets if not bucket.few] if record.scores else []
    if whole is None or len(buckets) < 2:
        return None
    longest = buckets[-1]
    score = next((each for each in longest.scores if each.metric == whole.name), None)
    if score is None or score.value >= FALL * whole.value or (score.high is not None and score.high >= whole.value):
        return None
    return Advice(
        "long_sentences",
        f"long sentences fall off: chrF {score.value:.1f} for {longest.name} {longest.unit}, {whole.value:.1f} for all",
        "more long sentences in the corpus, and none left out by batch.longest; model.positions=rotary carries further; or translate "
        "sentence by sentence",
    )


BELOW: Final = 5.0  # points


def _below_validation(record: RunRecord) -> Advice | None:
    best = record.best
    score = record.scores.of(TITLES[record.metric]) if record.scores else None
    if best is None or score is None:
        return None
    valids: Sequence[ValidReport | DirectionScore] = [best]
    if record.scores and record.scores.directions:  # the test score is of the first alone, and the validation's of all
        first = record.scores.directions[0].direction
        valids = [each for each in best.directions if each.direction == first]
    if not valids:
        return None
    valid = float(getattr(valids[0], record.metric))
    if score.value >= valid - BELOW:
        return None
    return Advice(
        "below_validation",
        f"{NAMES[record.metric]} is {score.value:.1f} on the test set and was {valid:.1f} on the validation set",
        "the test set is of another kind than the corpus, or validation pairs are close to training pairs: see the overlap in the report "
        "of the corpus, and add text like the test set's",
        serious=True,
    )


SMALL: Final = 10_000  # pairs


def _small(record: RunRecord) -> Advice | None:
    pairs = record.train_pairs()
    if pairs is None or pairs >= SMALL:
        return None
    ways = ["further corpora", "translations of target text back into the source language (--mono)"]
    if record.recipe is None or record.recipe.fine_tuning is None:
        ways.append("going on from a finished translator of these or related languages (--from)")
    do = f"more pairs help more than any setting: {', '.join(ways[:-1])}, or {ways[-1]}"
    return Advice("small_corpus", f"{figure(pairs)} training pairs are few", do)


DROPPED: Final = 0.30


def _check_dropped(record: RunRecord) -> Advice | None:
    if record.manifest is None:
        return None
    read, _, reasons = totals(record.manifest)
    empty = reasons.pop(Reason.EMPTY.label, 0)  # a line that is not translated yet is no loss, as a verse of another Testament
    read, dropped = read - empty, sum(reasons.values())
    if dropped <= DROPPED * read:
        return None
    most, pairs = max(reasons.items(), key=lambda each: each[1])
    return Advice(
        "dropped",
        f"{hundredths(dropped / read)} of the pairs were dropped, most ({figure(pairs)}) as {most.replace('_', ' ')}",
        "look at the dropped pairs in the report of the corpus: bad text is well lost, but a wrong language code or a shifted line "
        "loses good text",
    )


RULES: Final[tuple[Callable[[RunRecord], Advice | None], ...]] = (
    too_short, another_kind, still_improving, overfits, underfits, unstable, _padding, _waiting, _small, _check_dropped,
)  # fmt: skip
LEARNT: Final[tuple[Callable[[RunRecord], Advice | None], ...]] = (_long_sentences, _below_validation)

# Kind of suspicion: the share of the sentences from which on it is a matter of the translator, whether that is serious, what helps.
SUSPICIONS: Final = {
    SuspicionKind.LOOP: (0.01, True, "loops are a sign of too little training or text; until then --no-repeat 4 forbids them"),
    SuspicionKind.COPIED: (
        0.01,
        True,
        "the corpus likely holds untranslated pairs; shorter copies are dropped too by data.filters.copied_words=2",
    ),
    SuspicionKind.EMPTY: (0.005, True, "something is wrong: look at these sources"),
    SuspicionKind.SAME: (0.01, True, "it says what is frequent, not what the source says: too little training or text, or shifted lines"),
    SuspicionKind.NUMBERS: (0.02, False, "drop pairs whose numbers differ, that the model learns to copy them: data.filters.numbers=drop"),
    SuspicionKind.PLACEHOLDERS: (0.01, False, "too few pairs of the corpus have any: add text with %s and {name} in it"),
    SuspicionKind.SHORT: (0.02, False, "a longer translation is preferred by --length-penalty {higher:g} (now {now:g})"),
    SuspicionKind.LONG: (0.02, False, "a shorter translation is preferred by --length-penalty {lower:g} (now {now:g})"),
    SuspicionKind.ESCAPED: (0.005, False, "the corpus holds HTML escapes such as &quot;: undo them before training"),
}  # fmt: skip


def _suspicious(record: RunRecord) -> list[Advice]:
    if record.scores is None or not record.scores.sentences:
        return []
    now = record.scores.search.get("length_penalty", SearchSettings().length_penalty)
    penalties = {"now": now, "higher": now + 0.4, "lower": max(0.0, now - 0.4)}
    found = []
    for kind, (bound, serious, do) in SUSPICIONS.items():
        number, of = record.scores.suspicious.get(kind.value, 0), record.scores.sentences
        if number > bound * of:
            seen = f"{figure(number)} of {figure(of)} translations ({hundredths(number / of)}): {kind.value}"
            do = do.format(**penalties) if kind in (SuspicionKind.SHORT, SuspicionKind.LONG) else do
            found.append(Advice(f"suspicious_{kind.name.lower()}", seen, do, serious=serious))
    return found
