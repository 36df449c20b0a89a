"""`prepare` turns whatever parallel text people have into clean, counted, sharded training data:

    inputs     find and hash the files                                  the address of the work
    exchange   read, clean, bring equal sources together, settle        shards of text, counts        the engine, bucket by bucket
    pieces     learn from a sample of all shards                        pieces.model
    encode     ids of each shard                                        shards of ids                 the engine, shard by shard
    manifest   written last: what it names is there

The folder is addressed by its content: equal inputs and settings are not prepared twice, other pieces reuse the text, and an interrupted
run goes on.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any

from limelight.config import Settings
from limelight.corpus.cleaning.clean import Cleaner
from limelight.corpus.cleaning.leaks import LeakIndex
from limelight.corpus.cleaning.mistakes import losses, mistakes, refuse
from limelight.corpus.config import PrepareSettings
from limelight.corpus.encode import ShardEncoder, TextShard, add_figures, sample
from limelight.corpus.exchange.engine import ExchangeEngine, Progress, Watch
from limelight.corpus.exchange.finish import BucketFinish, merge_held_out, read_held_out, write_held_out
from limelight.corpus.exchange.settle import add
from limelight.corpus.feeding.directions import count_by_direction, suggest_temperature, temper
from limelight.corpus.inputs import Inputs, digest
from limelight.corpus.manifest import HELD_OUT, NAME, SIDES, CorpusEntry, CorpusManifest, FileEntry, InputEntry, Shard, add_row_names
from limelight.corpus.reading.streams import content_hash
from limelight.corpus.report.report import page
from limelight.corpus.tokenizers import check_given, check_tags, copy_vocabulary, load_tokenizers, store
from limelight.corpus.work_folder import REPORT, WorkFolder, load_prepared
from limelight.errors import DataError, LimelightError
from limelight.files import write_whole
from limelight.text.pieces.tags import TagSet
from limelight.text.pieces.tokenizer import learn, suggest_size


@dataclass(frozen=True)
class Preparation:
    """A preparation is one run: what was asked for and what there is to read. Without a folder nothing is kept: a check of the corpus."""

    settings: PrepareSettings
    inputs: Inputs
    folder: Path | None
    work: Path
    engine: ExchangeEngine
    watch: Watch

    @property
    def corpora(self) -> tuple[str, ...]:
        """Given validation and test sets are corpora too; they follow those of training."""
        sets, first = self.settings.held_out_sets, self.settings.languages
        given = (each.split if each.languages == first else f"{each.split} {'-'.join(each.languages)}" for each in sets)
        return (*(corpus.name for corpus in self.settings.corpora), *given)

    @property
    def weights(self) -> list[float]:
        return [*(corpus.weight for corpus in self.settings.corpora), *(1.0 for _ in self.settings.held_out_sets)]


def prepare(
    settings: PrepareSettings,
    folder: Path,
    engine: ExchangeEngine,
    watch: Watch,
    force: bool = False,
    anyway: bool = False,
) -> tuple[CorpusManifest, bool]:
    """The manifest, and whether it was there already. `anyway`: also of text that looks wrong, or is dropped for the most part."""
    before = load_prepared(folder)
    check_given(settings)  # refused before hours of reading, not after
    inputs = Inputs.find(settings)
    address, text_address = addresses(settings, inputs)
    if before is not None and before.address == address:
        return before, True
    if before is not None and not force:
        raise DataError(
            f"{folder} holds a corpus prepared from other inputs or with other settings; give another folder with -o, or --force "
            "to replace it"
        )
    place = WorkFolder(folder, text_address)
    manifest = CorpusManifest.load(place.build) if (place.build / NAME).exists() else None
    if manifest is None or manifest.address != address:
        refuse(mistakes(inputs.train, settings), anyway)
        place.begin()
        run = Preparation(settings, inputs, place.build, place.root, engine, watch)
        manifest = _build(run, place, before, (address, text_address), anyway)
    place.publish(manifest)
    return manifest, False


def _build(run: Preparation, place: WorkFolder, before: CorpusManifest | None, addresses: tuple[str, str], anyway: bool) -> CorpusManifest:
    if before is not None and before.text_address == addresses[1]:
        place.take_text(before)
        tally = before.statistics["tally"]
        kept = ((split, shard) for split, shards in before.splits.items() for shard in shards)
        shards = [TextShard(shard.name, split, shard.rows_by_corpus, shard.text) for split, shard in kept]
    else:
        try:
            tally, shards = _exchange(run)
            refuse(losses(_corpora(run, tally)), anyway)
        except DataError:
            place.discard()
            raise
    tags = add_row_names(run.settings.tag_set, tally)
    models = _learn(run, tally, shards, tags)
    vocabulary = copy_vocabulary(run.settings.given_vocabulary, place.build)
    check_tags(load_tokenizers(place.build, models, vocabulary)[0], tags)
    encoder = ShardEncoder(place.build, tuple(models), tuple(vocabulary), tags.names)
    encoded = list(run.engine.each(shards, encoder, run.watch))
    manifest = _manifest(run, addresses, tally, shards, (models, vocabulary), encoded)
    write_whole(place.build / REPORT, page(manifest).encode())
    manifest.save(place.build)
    return manifest


class Findings(Settings):
    """The findings are what a check of a corpus found."""

    languages: tuple[str, str]
    corpora: list[CorpusEntry]
    inputs: list[InputEntry]
    tally: dict[str, Any]
    mistakes: list[str]


def check(settings: PrepareSettings, work: Path, engine: ExchangeEngine, watch: Watch) -> Findings:
    """What `prepare` would find, by the same code, without learning pieces or keeping anything."""
    run = Preparation(settings, Inputs.find(settings), None, work, engine, watch)
    tally, _ = _exchange(run)
    corpora = _corpora(run, tally)
    problems = mistakes(run.inputs.train, settings) + losses(corpora)
    entries = run.inputs.entries
    return Findings(languages=settings.languages, corpora=corpora, inputs=entries, tally=tally, mistakes=problems)


def addresses(settings: PrepareSettings, inputs: Inputs) -> tuple[str, str]:
    """Address the whole, and the shards of text alone: other pieces or weights reuse those. Content counts, names of files do not."""
    value = settings.model_dump(mode="json")
    corpora = value.pop("corpora")
    pieces, given = value.pop("pieces"), [content_hash(path) for path in value.pop("given_pieces")]
    numbered = [content_hash(path) for path in value.pop("given_vocabulary", [])]
    marks = value.pop("marks", None)
    held_out = {key: chosen for key, chosen in value.pop("held_out").items() if key not in ("valid", "test", "pairs")}
    # Where there is none of these, addresses stay what they were.
    sets = [[each.split, each.languages] for each in settings.held_out.pairs]
    # A test set without a validation set has the number that the latter would have.
    alone = [["test", "alone"]] if settings.held_out.test and not settings.held_out.valid else []
    own = [[corpus.get(key) for key in ("languages", "partial")] for corpus in corpora]
    more: list[Any] = [own, sets] if sets or any(map(any, own)) else []
    more += alone
    text = digest(inputs.fingerprint, [[corpus["name"], corpus["columns"]] for corpus in corpora], value, held_out, *more)
    foreign = [[numbered, marks]] if numbered or marks else []
    tags = [corpus.get("tags") for corpus in corpora]
    named = [["tags", tags]] if any(tags) else []
    return digest(text, [corpus["weight"] for corpus in corpora], pieces, given, *foreign, *named), text


def _exchange(run: Preparation) -> tuple[dict[str, Any], list[TextShard]]:
    """Text shards of all splits, and the counts of everything read."""
    held_out = {split: read_held_out(parts, run.settings, split) for split, parts in run.inputs.held_out.items()}
    tables = [table for table, _ in held_out.values()]
    sources, targets = (tuple(text for table in tables for text in table.column(side).to_pylist()) for side in SIDES)
    if len(run.settings.directions) > 1:  # a source of one direction is the target of another
        sources = targets = (*sources, *targets)
    leaks = LeakIndex(sources, targets, run.settings.held_out.near) if tables else None
    buckets = run.inputs.buckets
    files = tuple(entry.paths[0] for entry in run.inputs.entries)
    finish = BucketFinish(run.settings, buckets, run.corpora, files, run.folder, run.work)
    cleaner = Cleaner(run.settings, buckets, leaks)
    outcomes = list(run.engine.exchange(run.inputs.train, cleaner, buckets, finish, run.work, run.watch))
    tally = reduce(add, [*(outcome["tally"] for outcome in outcomes), *(counts for _, counts in held_out.values())])
    if run.folder is None:
        return tally, []
    if not sum(row["pairs"] for row in tally["kept"] if row["split"] == "train"):
        raise DataError(
            "nothing is left to train on: every pair was dropped or held out; see why with `limelight prepare ... --check-only`"
        )
    shards = [TextShard(o["name"], "train", o["rows_by_corpus"], FileEntry(**o["text"])) for o in outcomes]
    _refuse_untaught(run, shards)
    for split in HELD_OUT:
        table = held_out[split][0] if split in held_out else merge_held_out(run.work, split)
        shards.append(write_held_out(run.folder, split, table, len(run.corpora)))
    return tally, shards


def _refuse_untaught(run: Preparation, shards: Sequence[TextShard]) -> None:
    """A translator lists what it was taught, so each pair of languages needs text."""
    asked = run.settings.stored[: len(run.settings.corpora)]
    taught = {pair for number, pair in enumerate(asked) if any(shard.rows_by_corpus[number] for shard in shards)}
    if lost := ["-".join(pair) for pair in dict.fromkeys(asked) if pair not in taught]:
        raise DataError(
            f"no pair is left to train on of {', '.join(lost[:40])}: its files are empty, or all was dropped or held out; "
            "leave these languages out, or see why with `limelight prepare ... --check-only`"
        )


def _learn(run: Preparation, tally: dict[str, Any], shards: list[TextShard], tags: TagSet) -> list[FileEntry]:
    """One model for both sides or one each: given, or learnt from a sample of all training shards."""
    assert run.folder is not None
    settings, given = run.settings.pieces, run.settings.given_pieces
    joint = len(given) == 1 if given else settings.joint
    sides_of = {"pieces.model": SIDES} if joint else {f"{side}.model": (side,) for side in SIDES}
    train = [shard for shard in shards if shard.split == "train"]
    # Of several pairs of languages small ones get their share of the pieces, as they will of the training.
    counts = [sum(shard.rows_by_corpus[number] for shard in train) for number in range(len(run.corpora))]
    seen = count_by_direction(counts, run.weights, run.settings.stored)
    weights = temper(counts, run.weights, run.settings.stored, suggest_temperature(seen))
    entries = []
    for number, (name, sides) in enumerate(sides_of.items()):
        run.watch(Progress("pieces", number, len(sides_of)))
        if given:
            model = Path(given[number]).read_bytes()
        else:
            size = settings.size or suggest_size(sum(tally["words"][side] for side in sides))
            named = (*settings.named, *(piece for piece in tags.pieces if piece not in settings.named))
            model = learn(sample(run.folder, train, weights, settings.sample, sides), settings.changed(size=size, named=named))
        entries.append(store(run.folder, name, model))
    run.watch(Progress("pieces", len(sides_of), len(sides_of)))
    return entries


def _manifest(
    run: Preparation,
    addresses: tuple[str, str],
    tally: dict[str, Any],
    shards: list[TextShard],
    cutting: tuple[list[FileEntry], list[FileEntry]],
    encoded: list[dict[str, Any]],
) -> CorpusManifest:
    assert run.folder is not None
    splits: dict[str, list[Shard]] = {"train": [], "valid": [], "test": []}
    figures: dict[str, dict[str, Any]] = {}
    for shard, done in zip(shards, encoded, strict=True):
        ids = FileEntry(**done["ids"])
        splits[shard.split].append(Shard(name=shard.name, rows=shard.rows, rows_by_corpus=shard.rows_by_corpus, text=shard.text, ids=ids))
        before = figures.get(shard.split)
        figures[shard.split] = add_figures(before, done["figures"]) if before else done["figures"]
    source, target = load_tokenizers(run.folder, *cutting)
    return CorpusManifest(
        address=addresses[0],
        text_address=addresses[1],
        languages=run.settings.languages,
        corpora=_corpora(run, tally),
        inputs=run.inputs.entries,
        settings=run.settings.model_dump(mode="json"),
        pieces=cutting[0],
        vocabulary=cutting[1],
        vocab_sizes=(source.size, target.size),
        splits=splits,
        statistics={"tally": tally, "pieces": figures},
    )


def _corpora(run: Preparation, tally: dict[str, Any]) -> list[CorpusEntry]:
    """read = kept + dropped is checked here, for every corpus: counts that do not add up must never be printed."""

    def counts(table: str, key: str, corpus: int) -> dict[str, int]:
        return {row[key]: row["pairs"] for row in tally[table] if row["corpus"] == corpus}

    entries = []
    for number, (name, weight) in enumerate(zip(run.corpora, run.weights, strict=True)):
        read = sum(row["pairs"] for row in tally["read"] if row["corpus"] == number)
        kept, dropped = counts("kept", "split", number), counts("dropped", "reason", number)
        if read != sum(kept.values()) + sum(dropped.values()):
            raise LimelightError(
                f"{name}: read {read:,} pairs, kept {sum(kept.values()):,} and dropped {sum(dropped.values()):,}: this is a fault of ours"
            )
        warned = counts("warned", "reason", number)
        entries.append(CorpusEntry(name=name, weight=weight, read=read, kept=kept, dropped=dropped, warned=warned))
    return entries
