"""Prints what powers of ten of pairs, lines and requests would take on rented machines: nodes, hours, bytes, requests of storage, money.

    python benchmarks/scale_cloud.py
    python benchmarks/scale_cloud.py --core-hour 0.03 --lines-per-second 185

Everything is in proportion to what docs/scale.md measured on one machine; prices are assumptions that can be given. Nothing here ran.
"""

import argparse
import math
from collections.abc import Iterable, Sequence

CORES = 32  # of a node
# Measured (docs/scale.md): core time of a pair by Ray with identification of languages; bytes of a pair as text, shuffled, written.
PREPARE_SECONDS = 84e-6
TEXT, SHUFFLED, WRITTEN = 136, 202, 235
SCALING = 0.5  # of perfect, assumed for many nodes
SHARD = 1 << 30  # bytes: shard_megabytes=1024
PART = 8 << 20  # bytes of a part of an upload, and of a fetch
SERVED_PIECES = 800  # source pieces a second of a core over HTTP, docs/operate.md
REQUEST_PIECES, REQUEST_BYTES = 60, 1_500  # a text with its headers, and its answer
BUSY = 0.6  # of its capacity that a server is planned for


def write_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    print(f"\n{title}\n\n| {' | '.join(columns)} |\n|{' --- |' * len(columns)}")
    for row in rows:
        print(f"| {' | '.join(row)} |")


def say_power(count: float) -> str:
    return f"10^{round(math.log10(count))}"


def say_bytes(count: float) -> str:
    for unit, size in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6)):
        if count >= size:
            return f"{count / size:,.3g} {unit}"
    return f"{count / 1e3:.0f} kB"


def say_hours(core_hours: float) -> str:
    """On one node, at perfect scaling within it."""
    hours = core_hours / CORES
    return f"{hours / 24:,.1f} days" if hours > 48 else f"{hours:.1f} h" if hours >= 1 else f"{3600 * hours:.0f} s"


def count_nodes(core_hours: float) -> int:
    """So that it takes an hour."""
    return max(1, math.ceil(core_hours / CORES / SCALING))


def say_money(dollars: float) -> str:
    return f"{dollars:,.0f}" if dollars >= 10 else f"{dollars:.2f}"


def pay(core_hours: float, puts: float, gets: float, asked: argparse.Namespace) -> str:
    wasted = 1 / SCALING if count_nodes(core_hours) > 1 else 1.0
    return say_money(core_hours * wasted * asked.core_hour + puts / 1e6 * asked.million_puts + gets / 1e6 * asked.million_gets)


def list_prepared(asked: argparse.Namespace) -> Iterable[Sequence[str]]:
    for pairs in (10.0**power for power in range(6, 12)):
        hours, read, written = pairs * PREPARE_SECONDS / 3600, pairs * TEXT, pairs * WRITTEN
        nodes, puts, gets = count_nodes(hours), written / PART + written / SHARD, read / PART
        kept = say_money(written / 1e9 * asked.gigabyte_month)
        wire = say_bytes(pairs * SHUFFLED / nodes) if nodes > 1 else "none"
        yield say_power(pairs), say_hours(hours), str(nodes), say_bytes(read), say_bytes(written), wire, pay(hours, puts, gets, asked), kept


def list_translated(asked: argparse.Namespace) -> Iterable[Sequence[str]]:
    for lines in (10.0**power for power in range(6, 11)):
        hours, text = lines / asked.lines_per_second / 3600, lines * TEXT
        nodes = count_nodes(hours)
        rate = lines / 3600 if nodes > 1 else asked.lines_per_second * CORES
        yield say_power(lines), say_hours(hours), str(nodes), say_bytes(text), f"{rate:,.0f}", pay(hours, 0, 0, asked)


def list_served(asked: argparse.Namespace) -> Iterable[Sequence[str]]:
    for rate in (10.0**power for power in range(6)):
        cores = math.ceil(rate * REQUEST_PIECES / (BUSY * SERVED_PIECES)) + 1
        nodes = math.ceil(cores / CORES)
        yield say_power(rate), f"{cores:,}", str(nodes), f"{say_bytes(rate * REQUEST_BYTES)}/s", say_money(cores * asked.core_hour)


def list_fed(asked: argparse.Namespace) -> Iterable[Sequence[str]]:
    """What a training takes out of storage: of a pair, 235 bytes and some 30 target pieces."""
    for devices in (1, 10, 100, 1_000):
        pieces = 0.3e6 * devices  # docs/scale.md: `big` on H100
        needed = pieces / 30 * WRITTEN
        yield f"{devices:,}", f"{pieces / 1e6:,.1f} M", f"{say_bytes(needed)}/s", f"{needed / PART:,.1f}", say_bytes(3600 * needed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--core-hour", type=float, default=0.045, help="USD")
    parser.add_argument("--gigabyte-month", type=float, default=0.023, help="USD, of object storage")
    parser.add_argument("--million-puts", type=float, default=5.0, help="USD")
    parser.add_argument("--million-gets", type=float, default=0.4, help="USD")
    parser.add_argument("--lines-per-second", type=float, default=95.0, help="of one core; `small`, float32, captions, no AMX")
    asked = parser.parse_args()
    one, hour = f"one node of {CORES} cores", "nodes for an hour"
    write_table(
        "Pairs to prepare",
        ("pairs", one, hour, "read", "written", "over the network, a node", "USD", "USD a month to keep"),
        list_prepared(asked),
    )
    write_table("Lines to translate", ("lines", one, hour, "text, both sides", "lines a second", "USD"), list_translated(asked))
    write_table("Requests a second", ("requests", "cores", "nodes", "network", "USD an hour"), list_served(asked))
    write_table(
        "Training from storage", ("devices", "target pieces a second", "bytes of shards", "fetches a second", "an hour"), list_fed(asked)
    )


if __name__ == "__main__":
    main()
