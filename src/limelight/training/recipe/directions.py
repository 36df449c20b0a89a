"""Several directions share a run by a temperature, which is chosen by how far apart their sizes are."""

from collections.abc import Mapping
from typing import Any

from limelight.corpus.feeding.directions import count_by_direction, list_fed, suggest_temperature, temper
from limelight.corpus.feeding.shards import PreparedCorpus
from limelight.training.run_folder import RunChoice


def choose_temperature(prepared: PreparedCorpus, asked: Mapping[str, Any]) -> tuple[float, RunChoice | None]:
    """`asked` is what a person gave for the batches. Nothing is said of one direction."""
    manifest, pairs = prepared.manifest, prepared.split("train")
    if len(manifest.directions) == 1:
        return 1.0, None
    weights, fed = [corpus.weight for corpus in manifest.corpora] * (2 if pairs.turns else 1), list_fed(manifest, pairs.turns)
    seen = {direction: count for direction, count in count_by_direction(pairs.counts, weights, fed).items() if count}
    temperature = float(asked.get("temperature") or suggest_temperature(seen))
    tempered = count_by_direction(pairs.counts, temper(pairs.counts, weights, fed, temperature), fed)
    least, most = min(seen, key=lambda each: seen[each]), max(seen.values())
    why = "asked for; " if "temperature" in asked else ""
    why += f"the largest has {most / seen[least]:.1f} times the pairs of the smallest, {'-'.join(least)}"
    if temperature == 1:
        why += ": each is seen in proportion"
    else:
        why += f", whose {seen[least]:,.0f} are seen {tempered[least] / seen[least]:.1f} times in an epoch"
    return temperature, RunChoice("directions", f"{len(seen)}, temperature {temperature:g}", why)
