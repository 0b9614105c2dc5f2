"""What earlier nights tell the next one: the nights whose folders lie beside its own, oldest first."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SUMMARY = "night.json"

NightJson = Mapping[str, Any]


class NightError(Exception):
    """A night's folder cannot be used; the message says in one line what to do."""


@dataclass(frozen=True)
class Past:
    """The summaries of earlier nights, oldest first."""

    summaries: tuple[NightJson, ...] = ()

    @property
    def nights(self) -> int:
        """How many there were."""
        return len(self.summaries)

    @property
    def next_program(self) -> int:
        """Where the last night stopped in the stream of generated programs; 0 when the seed was another."""
        return int(self.summaries[-1].get("programs", {}).get("next", 0)) if self.summaries else 0

    def seconds(self, target: str) -> float:
        """Seconds that a target has had."""
        return sum(float(_target(night, target).get("seconds", 0)) for night in self.summaries)

    def file(self, target: str) -> str:
        """The digest of a target's file on the last night that had it; empty when none had."""
        digests = [str(_target(night, target).get("file", "")) for night in self.summaries]
        return next((d for d in reversed(digests) if d), "")

    def found(self, target: str) -> bool:
        """Whether a target failed on the last night."""
        return bool(self.summaries and _target(self.summaries[-1], target).get("found"))

    @property
    def buckets(self) -> dict[str, str]:
        """The buckets of all findings so far, each with the first night that had it."""
        known: dict[str, str] = {}
        for night in self.summaries:
            for finding in night.get("findings", ()):
                known.setdefault(str(finding.get("bucket")), str(night.get("night", "")))
        return known


def _target(night: NightJson, name: str) -> Mapping[str, Any]:
    found = night.get("targets", {}).get(name, {})
    return found if isinstance(found, Mapping) else {}


def read_past(out: Path) -> Past:
    """The nights beside a night's folder that began before it; unreadable ones are left out."""
    found: list[NightJson] = []
    for path in sorted(out.resolve().parent.glob(f"*/{SUMMARY}")):
        if path.parent == out.resolve():
            continue
        try:
            plain = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        if isinstance(plain, dict) and "findings" in plain:
            found.append(plain)
    return Past(tuple(sorted(found, key=lambda night: str(night.get("started", "")))))


def read_night(folder: Path) -> NightJson:
    """The summary of a night. Raises NightError."""
    path = folder / SUMMARY if folder.is_dir() else folder
    try:
        plain = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise NightError(f"{folder} holds no night; give a folder that `nightly` has written") from None
    except (OSError, ValueError) as problem:
        raise NightError(f"{path} cannot be read: {problem}") from problem
    if not isinstance(plain, dict) or "findings" not in plain:
        raise NightError(f"{path} is not the summary of a night")
    return plain


def difference(a: NightJson, b: NightJson) -> dict[str, Sequence[str]]:
    """What changed from night `a` to night `b`, in words: findings that came and went, replays that turned.

    A finding that is gone may be fixed, or that night may have had no time to meet it again.
    """
    before, after = _findings(a), _findings(b)
    replayed = {r["name"]: r["outcome"] for r in a.get("replayed", ())}
    turned = [
        f"{r['name']}: {replayed[r['name']]} → {r['outcome']}"
        for r in b.get("replayed", ())
        if r["name"] in replayed and replayed[r["name"]] != r["outcome"]
    ]
    return {
        "only in the second": [after[k] for k in after if k not in before],
        "only in the first": [before[k] for k in before if k not in after],
        "in both": [after[k] for k in after if k in before],
        "recorded failures that turned": turned,
    }


def _findings(night: NightJson) -> dict[str, str]:
    return {
        str(f["bucket"]): f"{f['bucket']} {f['kind']} of {', '.join(f.get('calls', ()))}"
        for f in night.get("findings", ())
    }
