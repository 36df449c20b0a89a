"""`count` counts in each sentence what the scores of BLEU, chrF and TER are made of, by sacreBLEU.

All three are functions of a sum over sentences:

    score(set) = f(sum of counts of the sentences in the set)

BLEU counts matching word n-grams, chrF matching character n-grams, TER edits. So each sentence is counted once, and the score
of the whole set, of a length bucket, of one sentence or of ten thousand resampled sets costs an addition.

Resampled sets tell what chance alone could have done:

    bootstrap      draw as many sentences as there are, with replacement, and add up their counts (Koehn 2004)
    randomization  let each sentence's two translations swap sides by the toss of a coin (Riezler and Maxwell 2005)
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from sacrebleu.metrics.base import Metric
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER

from limelight.errors import ConfigError
from limelight.evaluation.config import EvaluateSettings, MetricName, TokenizerName
from limelight.text.languages import base

Numbers = npt.NDArray[np.float64]
Watch = Callable[[str, int, int], None]  # what is being done, how much of it, of how much

TITLES: dict[MetricName, str] = {"bleu": "BLEU", "chrf": "chrF2", "chrf++": "chrF2++", "ter": "TER"}
AT_ONCE = 64  # sentences counted between two looks at the clock: TER may need a second for these

DRAWS_AT_ONCE = 4_000_000

# Three-letter codes of FLORES and others, for the languages whose writing does not separate words, and Korean.
_SHORT = {
    "zho": "zh", "cmn": "zh", "yue": "zh", "jpn": "ja", "kor": "ko",
    "tha": "th", "lao": "lo", "khm": "km", "mya": "my", "bod": "bo",  # codespell:ignore tha
}  # fmt: skip
_OWN_TOKENIZER: dict[str, TokenizerName] = {"zh": "zh", "ja": "ja-mecab", "ko": "ko-mecab"}
_WITHOUT_SPACES = ("zh", "ja", "th", "lo", "km", "my", "bo")


@dataclass(frozen=True)
class MetricScore:
    """A score is a value with the bounds of its 95 % confidence interval, and the signature that says how to get it again."""

    name: str
    value: float
    low: float | None
    high: float | None
    signature: str
    higher_is_better: bool = True


@dataclass(frozen=True)
class MetricCounts:
    """The counts of a metric have a row for each sentence, and the function from a sum of rows to the score."""

    name: str
    rows: Numbers
    score_of: Callable[[Numbers], float]
    signature: str
    higher_is_better: bool = True

    @property
    def value(self) -> float:
        return self.score_of(self.rows.sum(axis=0))

    def of_each(self) -> list[float]:
        return [self.score_of(row) for row in self.rows]

    def score(self, settings: EvaluateSettings) -> MetricScore:
        low, high = self.interval(settings)
        return MetricScore(self.name, self.value, low, high, self.signature, self.higher_is_better)

    def interval(self, settings: EvaluateSettings) -> tuple[float, float] | tuple[None, None]:
        if settings.resamples is None:
            return None, None
        return bounds([self.score_of(row) for row in bootstrap(self.rows, settings.resamples, settings.seed)])

    def part(self, sentences: npt.NDArray[np.integer]) -> "MetricCounts":
        return MetricCounts(self.name, self.rows[sentences], self.score_of, self.signature, self.higher_is_better)


def bounds(values: Sequence[float]) -> tuple[float, float]:
    """The middle 95 % of resampled values, cut where sacreBLEU cuts."""
    ordered = sorted(values)
    outside = len(ordered) // 40
    return ordered[outside], ordered[-1 - outside]


def count(
    name: MetricName,
    system: Sequence[str],
    references: Sequence[Sequence[str]],
    settings: EvaluateSettings,
    language: str | None = None,
    watch: Watch = lambda *_: None,
) -> MetricCounts:
    """`references` are whole translations of the set, one or more, each as long as `system`."""
    metric = _metric(name, settings, language)
    rows: list[Sequence[float]] = []
    for start in range(0, len(system), AT_ONCE):
        watch(TITLES[name], start, len(system))
        some = slice(start, start + AT_ONCE)
        rows += metric._extract_corpus_statistics(list(system[some]), [list(each[some]) for each in references])
    watch(TITLES[name], len(system), len(system))
    if settings.resamples is not None:
        metric.n_bootstrap, metric.seed = settings.resamples, settings.seed

    def score_of(row: Numbers) -> float:
        return float(metric._compute_score_from_stats(row.tolist()).score)

    table = np.array(rows, np.float64).reshape(len(system), -1)
    return MetricCounts(TITLES[name], table, score_of, metric.get_signature().format(), name != "ter")


def tokenizer_for(language: str | None) -> tuple[TokenizerName, str | None]:
    """How BLEU finds the words of a language, and what a reader should know about it."""
    code = short_code(language)
    wanted = _OWN_TOKENIZER.get(code)
    if wanted is None:
        if not is_spaceless(language):
            return "13a", None
        spaceless = f"{language} is written without spaces: BLEU counts characters here; chrF is the number to report"
        return "char", spaceless
    try:
        BLEU(tokenize=wanted, force=True)
    except RuntimeError:
        return "char", (
            f"BLEU of {language} counts characters here, which is not comparable with published scores: the tokenizer {wanted} is "
            f"not installed; pip install 'sacrebleu[{code}]'"
        )
    return wanted, None


def is_spaceless(language: str | None) -> bool:
    return short_code(language) in _WITHOUT_SPACES


def short_code(language: str | None) -> str:
    """short_code("zho_Hans") -> "zh"; empty when the language is not known."""
    code = base(language or "")
    return _SHORT.get(code, code)


def _metric(name: MetricName, settings: EvaluateSettings, language: str | None) -> Metric:
    if name == "bleu":
        tokenize = settings.tokenize or tokenizer_for(language)[0]
        try:
            # force: sacreBLEU would log its suspicion of tokenized text, block by block; `evaluate` says it once, in words.
            return BLEU(lowercase=settings.lowercase, tokenize=tokenize, force=True)
        except RuntimeError:
            raise ConfigError(
                f"the tokenizer {tokenize} is not installed; pip install 'sacrebleu[{tokenize[:2]}]', or choose another with --tokenize"
            ) from None
    if name == "ter":
        dense = short_code(language) in ("zh", "ja")  # Tercom knows how to take these apart, and only these
        return TER(normalized=dense, asian_support=dense)
    if name in ("chrf", "chrf++"):
        return CHRF(lowercase=settings.lowercase, word_order=2 if name == "chrf++" else 0)
    raise ValueError(f"{name} is in MetricName, and nobody counts it here")


def bootstrap(rows: Numbers, resamples: int, seed: int) -> Numbers:
    """Counts of N sentences (N, k) -> their sums in each resample (resamples, k)."""
    sentences = len(rows)
    generator = np.random.default_rng(seed)
    sums = []
    for size in _blocks(resamples, sentences, 1):
        drawn = generator.choice(sentences, size=(size, sentences), replace=True)
        drawn += np.arange(size)[:, None] * sentences
        times = np.bincount(drawn.ravel(), minlength=size * sentences).reshape(size, sentences)
        sums.append(times.astype(np.float64) @ rows)
    return np.concatenate(sums)


def swap_pairs(a: Numbers, b: Numbers, trials: int, seed: int) -> Iterator[tuple[Numbers, Numbers]]:
    """Counts of two systems (N, k) -> their sums in each trial, some trials at a time, (some, k) twice."""
    generator = np.random.default_rng(seed)
    rows, own, both = a - b, b.sum(axis=0), a.sum(axis=0) + b.sum(axis=0)
    # numpy takes coins from words of 32 bits and throws the rest of the last away, so blocks are cut where none is left.
    for size in _blocks(trials, len(a), 32):
        coins = generator.integers(2, size=(size, len(a)), dtype=bool)
        first = coins.astype(np.float64) @ rows + own
        yield first, both - first


def _blocks(total: int, width: int, multiple: int) -> Iterator[int]:
    """Sizes that add up to `total`, each a multiple but the last."""
    most = max(1, DRAWS_AT_ONCE // max(1, width) // multiple) * multiple
    for start in range(0, total, most):
        yield min(most, total - start)
