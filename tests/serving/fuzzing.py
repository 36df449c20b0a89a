"""Requests made from the server's own OpenAPI document, valid and invalid, and what is wrong with the answers (schemathesis).

    python tests/serving/fuzzing.py http://127.0.0.1:5000 5000

A problem is: a status of 500 or more, an answer that the document does not describe, an invalid request that is not refused.
"""

import contextlib
import json
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import hypothesis
import requests
import schemathesis
from hypothesis.errors import Unsatisfiable
from schemathesis import Case, GenerationMode
from schemathesis.core.failures import FailureGroup
from schemathesis.specs.openapi import checks

CHECKS = [
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
    checks.negative_data_rejection,
]
SHORTEST = 5.0  # seconds: a shorter deadline than this may be missed, as it should be
KNOWN = {"source": "en", "target": "de", "source_lang": "EN", "target_lang": "DE", "model": None}


@dataclass
class Report:
    """`modes` and `statuses` count requests; `accepted` are the valid ones that were not refused."""

    modes: Counter[str] = field(default_factory=Counter)
    statuses: Counter[int] = field(default_factory=Counter)
    accepted: int = 0
    problems: list[str] = field(default_factory=list)

    @property
    def requests(self) -> int:
        return self.statuses.total()


def fuzz(url: str, wanted: int, seed: int = 0, headers: dict[str, str] | None = None) -> Report:
    """About so many requests, shared out among operations and half of them invalid."""
    document = requests.get(f"{url}/openapi.json", headers=headers, timeout=30).json()
    schema = schemathesis.openapi.from_dict(document)
    plans = list(_plans(schema))
    total = sum(weight for _, _, weight in plans)
    report, session = Report(), requests.Session()
    session.headers.update(headers or {})
    for number, (operation, mode, weight) in enumerate(plans):
        share = max(1, round(wanted * weight / total))
        _run(operation, mode, share, seed + number, lambda case: _judge(case, url, session, report))
    return report


def _plans(schema: Any) -> Iterator[tuple[Any, GenerationMode, int]]:
    """Operations with a body have most that can be wrong."""
    for found in schema.get_all_operations():
        operation = found.ok()
        weight = 8 if len(operation.body) else 1
        yield operation, GenerationMode.POSITIVE, weight
        if len(operation.body) or operation.query:  # a path of any letters is valid; drawing others takes for ever
            yield operation, GenerationMode.NEGATIVE, weight


def _run(operation: Any, mode: GenerationMode, examples: int, seed: int, judge: Any) -> None:
    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=examples,
        database=None,
        deadline=None,
        phases=[hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(case=operation.as_strategy(generation_mode=mode))
    def run(case: Case) -> None:
        judge(case)

    with contextlib.suppress(Unsatisfiable):  # there is no way to be invalid
        run()


def _judge(case: Case, url: str, session: requests.Session, report: Report) -> None:
    mode = "valid" if case.meta is None or case.meta.generation.mode.is_positive else "invalid"
    _steer(case, report.modes.total())
    response = case.call(base_url=url, session=session, timeout=60)
    report.modes[mode] += 1
    report.statuses[response.status_code] += 1
    report.accepted += mode == "valid" and response.status_code < 400
    told = f"{case.method} {case.path} {mode} {case.media_type or ''} {response.status_code}"
    if response.status_code >= 500:
        report.problems.append(f"{told}: {response.text[:300]} for {ascii(case.body)[:300]}")
    try:
        case.validate_response(response, checks=CHECKS)
    except FailureGroup as failures:
        for failure in failures.exceptions:
            if isinstance(failure, checks.AcceptedNegativeData) and response.status_code >= 400:
                continue  # 413 is a refusal too
            what = f"{type(failure).__name__}: {str(failure)[:300]}"
            report.problems.append(f"{told}: {what} for {ascii(case.body)[:300]} {ascii(case.query)[:200]}")


def _steer(case: Case, number: int) -> None:
    """Languages drawn at random exist nowhere, and would all be refused at the door; so most requests get those of the server."""
    body = case.body
    if not isinstance(body, dict):
        return
    if number % 8 and case.meta is not None and case.meta.generation.mode.is_positive:
        for name, value in KNOWN.items():
            if name in body and case.path != "/api/v1/score":
                body[name] = value
    wanted = body.get("timeout")
    if type(wanted) in (int, float) and 0 < wanted < SHORTEST:
        body["timeout"] = SHORTEST


def main() -> None:
    report = fuzz(sys.argv[1], int(sys.argv[2]))
    counts = {
        "requests": report.requests,
        "modes": report.modes,
        "statuses": report.statuses,
        "accepted": report.accepted,
    }
    sys.stdout.write(json.dumps({**counts, "problems": report.problems[:50]}, indent=1) + "\n")
    sys.exit(bool(report.problems))


if __name__ == "__main__":
    main()
