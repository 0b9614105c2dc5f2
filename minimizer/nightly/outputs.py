"""What a night leaves for people and scripts: night.json, JUnit XML, one HTML page, a short Markdown text.

All are made from the ledger alone, so they can be made at any moment, also of a night that was cut short.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from importlib import resources
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jinja2

from minimizer.buckets import Known
from minimizer.corpus import Recording
from minimizer.nightly.durations import words
from minimizer.nightly.history import SUMMARY, Past
from minimizer.nightly.ledger import NightState
from minimizer.nightly.units import Event

NEW, SEEN, RECORDED, KNOWN = "new", "seen", "recorded", "known"
"""What a finding is: never met, met on an earlier night, recorded in the corpus, listed in known.toml."""


@dataclass(frozen=True)
class Context:
    """What is known besides the ledger."""

    name: str
    recorded: Sequence[Recording]
    known: Sequence[Known]
    past: Past
    spent: float


def summarise(state: NightState, context: Context) -> dict[str, Any]:
    """The content of night.json."""
    begun = state.begun or {}
    findings = [_finding(state, bucket, event, context) for bucket, event in state.findings.items()]
    order = {NEW: 0, SEEN: 1, RECORDED: 2, KNOWN: 3}
    findings.sort(key=lambda f: (order[f["standing"]], f["kind"], f["bucket"]))
    return {
        "night": context.name,
        "started": _iso(begun.get("at")),
        "ended": _iso((state.ended or {}).get("at")),
        "complete": state.ended is not None,
        "budget": begun.get("budget", 0),
        "seed": begun.get("seed", 0),
        "spent": round(context.spent, 1),
        "findings": findings,
        "counts": dict(Counter(f["standing"] for f in findings)),
        "replayed": [dict(event) for event in state.replayed.values()],
        "targets": _targets(state, begun.get("files", {})),
        "programs": _programs(state),
        "unconfirmed": [{"id": e["id"], "why": e["why"]} for e in state.unconfirmed.values()],
        "waiting": [str(event["id"]) for event in state.pending],
        "lost": [{"key": e.get("key", ""), "why": e.get("why", "")} for e in state.lost],
    }


def _iso(at: Any) -> str | None:
    if not isinstance(at, (int, float)):
        return None
    return datetime.fromtimestamp(at, timezone.utc).isoformat(timespec="seconds")


def _finding(state: NightState, bucket: str, event: Event, context: Context) -> dict[str, Any]:
    standing, issue, note = standing_of(bucket, event, context)
    kept = "bucket kind signature message calls nodes verified minimal run program torch".split()
    return {
        **{key: event[key] for key in kept if key in event},
        "standing": standing,
        "issue": issue,
        "note": note,
        "duplicates": len(state.duplicates.get(bucket, ())),
    }


def standing_of(bucket: str, event: Event, context: Context) -> tuple[str, str, str]:
    """Whether a finding is new, and the issue and the note on one that is not."""
    for known in context.known:
        if known.matches(bucket, str(event["kind"]), event.get("calls", ())):
            return KNOWN, known.issue, known.note
    for recording in context.recorded:
        if recording.bucket == bucket:
            status = recording.status
            return RECORDED, str(status.get("issue", "")), str(status.get("judgement", ""))
    first = context.past.buckets.get(bucket)
    return (SEEN, "", f"first seen on night {first}") if first is not None else (NEW, "", "")


def _targets(state: NightState, files: Mapping[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for event in state.targets.values():
        entry = found.setdefault(event["name"], {"seconds": 0.0, "statuses": [], "found": False})
        entry["seconds"] += float(event.get("seconds", 0))
        entry["statuses"].append(event["status"])
        entry["found"] = entry["found"] or event["status"] == 1
        entry["file"] = files.get(event["name"], "")
    return found


def _programs(state: NightState) -> dict[str, Any]:
    figures = {name: int(state.total(name)) for name in ("judged", "refused", "inputs", "compiles")}
    cpu = state.total("cpu_seconds")
    rate = round(60 * figures["judged"] / cpu, 1) if cpu else None
    return {
        **figures,
        "cpu_seconds": round(cpu, 1),
        "judged_per_cpu_minute": rate,
        "suspects": len(state.suspects),
        "next": state.next_program,
    }


def junit(night: Mapping[str, Any]) -> str:
    """JUnit XML: a test case for each recording, target and finding; only new findings are failures.

    A recorded failure that still fails is skipped, as an expected failure is; one that is fixed passes.
    """
    cases: list[ElementTree.Element] = []
    for replay in night["replayed"]:
        case = ElementTree.Element("testcase", classname="recorded", name=replay["name"])
        if replay["outcome"] != "fixed":
            ElementTree.SubElement(case, "skipped", message=f"{replay['outcome']}: {replay.get('said', '')}")
        cases.append(case)
    for name, target in night["targets"].items():
        cases.append(
            ElementTree.Element("testcase", classname="target", name=name, time=f"{target['seconds']:.1f}")
        )
    for finding in night["findings"]:
        name = f"{finding['kind']} of {', '.join(finding['calls'])}"
        case = ElementTree.Element("testcase", classname="finding", name=f"{name} ({finding['bucket']})")
        if finding["standing"] == NEW:
            failure = ElementTree.SubElement(case, "failure", message=_clean(finding["message"]))
            failure.text = _clean(finding.get("program", ""))
        else:
            ElementTree.SubElement(
                case, "skipped", message=_clean(f"{finding['standing']} {finding['note']}")
            )
        cases.append(case)
    suite = ElementTree.Element(
        "testsuite",
        name=f"aoti-minimize night {night['night']}",
        tests=str(len(cases)),
        failures=str(sum(case.find("failure") is not None for case in cases)),
        skipped=str(sum(case.find("skipped") is not None for case in cases)),
        time=f"{night['spent']:.1f}",
    )
    suite.extend(cases)
    root = ElementTree.Element("testsuites")
    root.append(suite)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _clean(text: str) -> str:
    """Text without the characters that XML cannot hold."""
    return "".join(c for c in text if c in "\t\n\r" or (ord(c) >= 32 and ord(c) not in (0xFFFE, 0xFFFF)))


def markdown(night: Mapping[str, Any]) -> str:
    """A few lines for a chat."""
    lines = [f"**Night {night['night']}**: {headline(night)}", ""]
    for finding in night["findings"]:
        if finding["standing"] == NEW:
            said = finding["message"].splitlines()[0][:120].replace("`", "'") if finding["message"] else ""
            lines.append(f"- new: {finding['kind']} of `{', '.join(finding['calls'])}`: {said}")
    turned = [r for r in night["replayed"] if r["outcome"] != "fails"]
    lines += [f"- {r['outcome']}: {r['name']}" for r in turned]
    programs = night["programs"]
    if programs["judged"]:
        lines.append(
            f"- {programs['judged']} generated programs in {programs['compiles']} compilations, "
            f"{programs['inputs']} inputs, {programs['judged_per_cpu_minute']} programs per CPU minute"
        )
    return "\n".join(lines).rstrip() + "\n"


def headline(night: Mapping[str, Any]) -> str:
    """The night in one line."""
    counts = night["counts"]
    old = sum(counts.get(name, 0) for name in (SEEN, RECORDED, KNOWN))
    outcomes = Counter(r["outcome"] for r in night["replayed"])
    parts = [f"{counts.get(NEW, 0)} new", f"{old} known"]
    parts += [f"{outcomes[name]} {name}" for name in ("fixed", "changed", "flaky") if outcomes[name]]
    cut = "" if night["complete"] else " (cut short)"
    return f"{', '.join(parts)} in {words(night['spent'])}{cut}"


def page(night: Mapping[str, Any], past: Past) -> str:
    """One HTML page that needs nothing beside it."""
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    source = resources.files("minimizer.nightly").joinpath("night.html.jinja").read_text(encoding="utf-8")
    return environment.from_string(source).render(
        night=night, trend=trend([*past.summaries, night]), headline=headline(night), words=words
    )


def trend(nights: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """A row for each night: its name and counts."""
    return [
        {
            "night": n.get("night", "?"),
            "new": n.get("counts", {}).get(NEW, 0),
            "known": sum(n.get("counts", {}).get(name, 0) for name in (SEEN, RECORDED, KNOWN)),
            "fixed": sum(r.get("outcome") == "fixed" for r in n.get("replayed", ())),
            "programs": n.get("programs", {}).get("judged", 0),
        }
        for n in nights
    ]


def write_all(out: Path, night: Mapping[str, Any], past: Past) -> None:
    """Write every output, each whole or not at all."""
    texts = {
        SUMMARY: json.dumps(night, indent=1) + "\n",
        "junit.xml": junit(night),
        "night.md": markdown(night),
        "night.html": page(night, past),
    }
    for name, text in texts.items():
        fresh = out / f".{name}.new"
        fresh.write_text(text, encoding="utf-8", errors="replace")
        fresh.replace(out / name)
