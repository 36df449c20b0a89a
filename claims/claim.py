"""A claim is a figure that the docs state, measured again: one line each, `name  value  bar  ok|SHORT`."""

import argparse
import sys
from collections.abc import Callable


class Claims:
    """Collects figures, prints each as it is measured, and knows whether all hold."""

    def __init__(self) -> None:
        self.short: list[str] = []

    def at_least(self, name: str, value: float, bar: float) -> None:
        self._line(name, value, f">= {bar:g}", value >= bar)

    def at_most(self, name: str, value: float, bar: float) -> None:
        self._line(name, value, f"<= {bar:g}", value <= bar)

    def ended_well(self, name: str, code: int) -> None:
        """The exit code of a process; one below zero is the signal that ended it, and no less a failure."""
        self.at_most(name, abs(code), 0)

    def note(self, name: str, value: float) -> None:
        """A figure without a bar."""
        self._line(name, value, "-", True)

    def _line(self, name: str, value: float, bar: str, holds: bool) -> None:
        print(f"{name:58s} {value:12.5g}  {bar:12s} {'ok' if holds else 'SHORT'}", flush=True)
        if not holds:
            self.short.append(name)


def run(measure: Callable[[Claims, bool], None], description: str | None) -> None:
    """Exit 0 only if all figures hold."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help="the whole evidence, not only what fits into a minute")
    args = parser.parse_args()
    claims = Claims()
    measure(claims, args.full)
    sys.exit(1 if claims.short else 0)
