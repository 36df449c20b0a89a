"""Old text is mixed into new text, so that a translator that learns a new kind of text does not forget."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from limelight.bundle import Bundle, BundleSettings, read
from limelight.bundle.layout import SHARED, SOURCE, SOURCE_VOCABULARY, TARGET, TARGET_VOCABULARY, VOCABULARY
from limelight.chance import draws, key_of
from limelight.corpus.config import CorpusSettings, PrepareSettings, SpecialIds
from limelight.corpus.feeding.shards import PreparedCorpus
from limelight.corpus.feeding.tagging import Tagger
from limelight.corpus.inputs import find_train
from limelight.corpus.manifest import HELD_OUT, CorpusManifest, Split
from limelight.corpus.reading.language_tags import closeness
from limelight.corpus.reading.row_tags import FIELD
from limelight.corpus.reading.streams import content_hash
from limelight.errors import ConfigError, DataError
from limelight.files import whole_file
from limelight.interop.huggingface.load import license_of
from limelight.text.pieces.tags import SYNTHETIC
from limelight.training.config import Inherited
from limelight.training.run_folder import BUNDLE, PREPARED

REPLAY = "replay.parquet"
MOST = 1_000_000  # pairs: more than a run of fine-tuning sees
SHARE = 0.5  # of the pairs that are seen


@dataclass(frozen=True)
class OldText:
    """Old text is what there is of the text that a translator was trained on: that of its run, or corpora that were named."""

    bundle: Path
    asked: float | None
    named: tuple[CorpusSettings, ...] = ()

    def __post_init__(self) -> None:
        if self.asked == 0 and self.named:
            raise ConfigError("--replay 0 leaves the old text out, but --replay-data names some; leave out one of the two")

    @property
    def prepared(self) -> Path | None:
        """The prepared corpus of the run that the bundle belongs to, if it is still there."""
        return self._found[0]

    @cached_property
    def _found(self) -> tuple[Path | None, str]:
        """The corpus, or why there is none. A folder around a bundle is its run only if the bundle lies there as runs lay it."""
        bundle = self.bundle.absolute()
        for run in (bundle, *([bundle.parent] if bundle.name == BUNDLE else [])):
            if (run / PREPARED / "manifest.json").exists():
                old = CorpusManifest.load(run / PREPARED)
                if len(old.directions) > 1:
                    return None, f"{run / PREPARED} has several directions, which cannot be mixed in"
                theirs, ours = old.languages, read(bundle).settings.languages
                if any(closeness(a, b) is None for a, b in zip(ours, theirs, strict=True)):
                    return None, f"{run / PREPARED} is {' to '.join(theirs)}, but it translates {' to '.join(ours)}"
                return run / PREPARED, ""
        return None, "it is no run with its text beside it"

    @property
    def share(self) -> float:
        if self.prepared is None and not self.named:
            if self.asked:
                raise DataError(f"for {self.bundle} there is nothing to replay: {self._found[1]}; name the old text with --replay-data")
            return 0.0
        return SHARE if self.asked is None else self.asked

    @property
    def described(self) -> tuple[str, str]:
        if self.share:
            return f"{self.share:.0%} of the pairs are of the old text", "against forgetting"
        why = "not wanted" if self.asked == 0 else f"the old text cannot be mixed in: {self._found[1]}"
        return "none", f"{why}; what is not in the new text may be forgotten"

    def corpora(self, run: Path, seed: int) -> list[CorpusSettings]:
        if self.named or self.prepared is None:
            return list(self.named)
        return [sample_replay(self.prepared, run, seed)]


def mix_old_text(
    settings: PrepareSettings, old: OldText, run: Path, seed: int, prepare: Callable[[PrepareSettings], CorpusManifest]
) -> PrepareSettings:
    """New text in the pieces of the old translator, with some of the old text beside it."""
    translator = read(old.bundle)
    settings = settings.changed(
        normalize=translator.settings.normalization,
        given_pieces=_files(translator, (SHARED,), (SOURCE, TARGET)),
        given_vocabulary=_files(translator, (VOCABULARY,), (SOURCE_VOCABULARY, TARGET_VOCABULARY)),
        marks=special_ids_of(aim_at(translator.settings, settings)),
    )
    if not old.share:
        return settings
    theirs = aim_at(translator.settings, settings).languages
    if any(closeness(ours, new) is None for ours, new in zip(theirs, settings.languages, strict=True)):
        raise DataError(
            f"{old.bundle} translates {theirs[0]} to {theirs[1]}, but the new text is {settings.languages[0]} to "
            f"{settings.languages[1]}, so the old text cannot be mixed in; go on without it by --replay 0"
        )
    if (run / PREPARED / "manifest.json").exists():
        before = CorpusManifest.load(run / PREPARED)
        if _is_both(PrepareSettings(**before.settings), settings, old, run) and _is_unchanged(before, settings):
            return _reweight(before, len(settings.corpora), old.share)
    _split_off(settings, run, prepare)
    both = _join(settings, old.corpora(run, seed), run)
    return _reweight(prepare(both), len(settings.corpora), old.share)


def _join(settings: PrepareSettings, old: Sequence[CorpusSettings], run: Path) -> PrepareSettings:
    held_out, names = settings.held_out.changed(**choose_held_out(run, settings)), {corpus.name for corpus in settings.corpora}
    others = [corpus.changed(name=f"old {corpus.name}") if corpus.name in names else corpus for corpus in old]
    return settings.changed(corpora=[*settings.corpora, *others], held_out=held_out)


def special_ids_of(settings: BundleSettings) -> SpecialIds | None:
    """What stands around the pieces of a translator's pairs; None where it is the usual."""
    model = settings.model
    marks = SpecialIds(
        pad=model.pad_token,
        start=model.start_token,
        end=model.end_token,
        source_begin=settings.source_begin,
        target_begin=settings.target_begin,
        source_ends=settings.source_ends,
    )
    return None if marks == SpecialIds() else marks


def aim_at(old: BundleSettings, new: PrepareSettings) -> BundleSettings:
    """The settings of a translator of many languages in the direction of a text that has one. Of several, each source is told its own."""
    if old.tags is None or len(new.directions) > 1:
        return old
    source, target = new.languages
    return old.aim(target, source)


def inherit_from(old: Bundle, new_pieces: bool = False) -> Inherited | None:
    """What a translator made of this one keeps of it; None where it is the usual. What names pieces by id means others among new ones."""
    settings = old.settings
    if new_pieces:
        settings = settings.model_copy(update={"tags": None, "search": settings.search.changed(suppress=())})
    kept = Inherited(search=settings.search, alignment=settings.alignment, license=license_of(old.folder), tags=settings.tags)
    return None if kept == Inherited() else kept


def _files(translator: Bundle, *choices: tuple[str, ...]) -> list[str]:
    """Those of a bundle that has one for both sides, or one each, or none."""
    paths = ([translator.folder / name for name in names] for names in choices)
    return next(([str(path) for path in found] for found in paths if all(path.is_file() for path in found)), [])


def split_off_at(run: Path, split: Split) -> Path:
    """Where the validation or test set of the new text lies, when none was given."""
    return run / f"new-{split}.parquet"


def choose_held_out(run: Path, settings: PrepareSettings) -> dict[str, Any]:
    """The sets that were given, and for the others those that were split off, or none where the text was too short for one."""
    chosen: dict[str, Any] = {}
    for split in HELD_OUT:
        if not getattr(settings.held_out, split):
            path = split_off_at(run, split)
            chosen |= {split: (str(path),)} if path.exists() else {f"{split}_pairs": 0}
    return chosen


def _split_off(settings: PrepareSettings, run: Path, prepare: Callable[[PrepareSettings], CorpusManifest]) -> None:
    wanted = [split for split in HELD_OUT if not getattr(settings.held_out, split)]
    if not wanted:
        return
    prepare(settings)
    prepared = PreparedCorpus.open(run / PREPARED)
    for split in wanted:
        pairs, path = prepared.split(split), split_off_at(run, split)
        path.unlink(missing_ok=True)
        if pairs.rows:
            write_pairs(path, *pairs.texts(np.arange(pairs.rows, dtype=np.int64)))


def _is_both(done: PrepareSettings, settings: PrepareSettings, old: OldText, run: Path) -> bool:
    """Whether new and old text were prepared together before, from what is asked for now; but for the weights."""
    new = len(settings.corpora)
    plain = [corpus.changed(weight=1.0) for corpus in done.corpora[new:]]
    both = _join(settings, old.named or (_build_replay(run),), run)
    return done.changed(corpora=[*done.corpora[:new], *plain]) == both


def _is_unchanged(before: CorpusManifest, settings: PrepareSettings) -> bool:
    """Whether the files of the new text are those of before: of others another part is held out."""
    hashes = [[content_hash(path) for path in part.paths] for part in find_train(settings)]
    return hashes == [entry.sha256 for entry in before.inputs if entry.corpus < len(settings.corpora)]


def _reweight(manifest: CorpusManifest, new: int, share: float) -> PrepareSettings:
    """The settings of the manifest, with the weight that its counts ask for. The first `new` corpora are of new text."""
    settings = PrepareSettings(**manifest.settings)
    entries = manifest.corpora[: len(settings.corpora)]
    seen = sum(corpus.kept.get("train", 0) * corpus.weight for corpus in entries[:new])
    weight = weight_for(share, seen, sum(corpus.kept.get("train", 0) for corpus in entries[new:]))
    corpora = [*settings.corpora[:new], *(corpus.changed(weight=weight) for corpus in settings.corpora[new:])]
    return settings.changed(corpora=corpora)


def sample_replay(prepared: Path, run: Path, seed: int) -> CorpusSettings:
    """Pairs of the old training text, drawn without return, as a corpus of the new run: those that people wrote, if there are any, with
    the names that their sources are told."""
    pairs = PreparedCorpus.open(prepared).split("train")
    names, every = pairs.prepared.manifest.tag_set.names, np.arange(pairs.rows, dtype=np.int64)
    told = [[name for bit, name in enumerate(names) if bits >> bit & 1] for bits in Tagger(pairs, seed, 0.0).names_of(every).tolist()]
    by_people = np.array([SYNTHETIC not in some for some in told])
    some = every[by_people] if by_people.any() else every
    order = np.argsort(draws(key_of(seed, pairs.rows), some), kind="stable")
    samples = np.sort(some[order[:MOST]])
    write_pairs(run / REPLAY, *pairs.texts(samples), [told[sample] for sample in samples] if names else None)
    return _build_replay(run)


def _build_replay(run: Path) -> CorpusSettings:
    return CorpusSettings(name="replay", paths=[str(run / REPLAY)], columns=("source", "target"))


def write_pairs(path: Path, source: pa.StringArray, target: pa.StringArray, names: Sequence[Sequence[str]] | None = None) -> None:
    tags = {} if names is None else {FIELD: pa.array(names, pa.list_(pa.string()))}
    with whole_file(path) as beside:
        pq.write_table(pa.table({"source": source, "target": target, **tags}), beside)


def weight_for(share: float, new: float, old: int) -> float:
    """How often each of `old` pairs is seen in an epoch, so that `share` of all are old when `new` ones are seen."""
    return float(min(1000.0, max(1e-3, share / (1 - share) * new / max(1, old))))
