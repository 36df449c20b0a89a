"""The report of the doctor becomes lines for a terminal, or Markdown for a bug report. Problems with their fix come first, then the parts,
then the machine.
"""

from collections.abc import Iterator
from typing import Any

from limelight.cli.doctor.findings import GB, DoctorReport, add, missing
from limelight.cli.doctor.machine import ADDED, NEEDED, PURPOSE

TITLES = {
    "step": "training steps",
    "pieces": "SentencePiece",
    "safetensors": "SafeTensors",
    "corpus": "Polars, Parquet",
    "translating": "translating",
    "ctranslate2": "CTranslate2",
}


def as_lines(report: DoctorReport) -> list[str]:
    lines = [headline(report), ""]
    for finding in report.findings:
        lines += [f"{'PROBLEM' if finding.stops else 'note'}  {finding.what}", f"         fix: {finding.fix}"]
    lines += [""] if report.findings else []
    for part in report.parts:
        title = TITLES.get(part.name, part.name)
        lines.append(f"{'ok' if part.works else 'FAILED':6} {title:17}{part.seconds:5.2f} s  {part.said}")
    lines += ["", *(f"{name:12} {text}" for name, text in describe_machine(report.facts))]
    return [*lines, f"{'after':12} {report.seconds} s"]


def as_markdown(report: DoctorReport) -> list[str]:
    lines = ["### limelight doctor", "", headline(report), ""]
    for finding in report.findings:
        lines.append(f"- **{'problem' if finding.stops else 'note'}**: {finding.what}. Fix: {finding.fix}")
    lines += ["", "| part | | s | |", "| --- | --- | ---: | --- |"]
    for part in report.parts:
        title, works = TITLES.get(part.name, part.name), "ok" if part.works else "**failed**"
        lines.append(f"| {title} | {works} | {part.seconds:.2f} | {_cell(part.said)} |")
    lines += ["", "| | |", "| --- | --- |"]
    return [*lines, *(f"| {name} | {_cell(text)} |" for name, text in describe_machine(report.facts)), ""]


def headline(report: DoctorReport) -> str:
    name, notes = f"limelight {report.facts['limelight']['version']}", len(report.findings)
    if report.works:
        below = f"; {notes} note{'s' * (notes > 1)} below" if notes else ""
        can = "train and translate" if any(part.name == "step" for part in report.parts) else "translate what was exported"
        return f"{name} works here: it can {can}{below}"
    count = sum(finding.stops for finding in report.findings)
    return f"{name} does not work here: {count} problem{'s' * (count > 1)}, with what to do"


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())


def describe_machine(facts: dict[str, Any]) -> Iterator[tuple[str, str]]:
    system, python, cpu, memory = facts["system"], facts["python"], facts["cpu"], facts["memory"]
    yield "limelight", facts["limelight"]["version"] + (" (editable)" if facts["limelight"]["editable"] else "")
    yield "Python", f"{python['version']} ({python['environment']})"
    name, libc = f"{system['name']} {system['release']} {system['machine']}", system["libc"] or "unknown libc"
    yield "system", f"{name}, {libc}; memory from {facts['allocator']}"
    cores = f"{cpu['affinity']} of {cpu['cores']} cores, load {cpu['load']:.1f}"
    yield "CPU", f"{cpu['name'] or 'unknown'}, {cores}; {' '.join(cpu['flags']) or 'no flags known'}"
    limit = f"; this container may use {size(memory['container_limit'])}" if memory["container_limit"] else ""
    yield "memory", f"{size(memory['free'])} free of {size(memory['total'])}{limit}"
    yield from _engines(facts)
    yield "disk", ", ".join(f"{name} {size(place['free'])} free" for name, place in facts["disk"].items())
    if facts["variables"]:
        yield "variables", ", ".join(f"{name}={value}" for name, value in facts["variables"].items())
    yield "packages", ", ".join(f"{name} {each['has'] or 'MISSING'}" for name, each in facts[NEEDED].items())
    for extra, packages in facts[ADDED].items():
        absent = missing(packages)
        there = ", ".join(f"{name} {each['has']}" for name, each in packages.items())
        yield f"[{extra}]", f"no {', '.join(absent)}; for {PURPOSE[extra]}: {add(extra)}" if absent else there


def _engines(facts: dict[str, Any]) -> Iterator[tuple[str, str]]:
    if torch := facts.get("torch"):
        build = f"{torch['version']}, {torch['build']} build, {torch['cpu_capability']}"
        yield "torch", f"{build}, {torch['threads']} threads"
        units = ", ".join(torch["bfloat16_units"]) or "none"
        yield "device", f"{torch['device']}; trains in {torch['numbers']}; bfloat16 units of the CPU: {units}"
        for number, each in enumerate(torch["accelerators"]):
            yield f"device {number}", f"{each['name']}, {size(each['free'])} free of {size(each['memory'])}"
    if engine := facts.get("ctranslate2"):
        kinds = "; ".join(f"{device}: {', '.join(types)}" for device, types in engine["compute_types"].items())
        yield "CTranslate2", f"{engine['version']}; {kinds}"


def size(count: int | None) -> str:
    return "unknown" if count is None else f"{count / GB:.1f} GB"
