"""A night: replay what is recorded, then search targets and generated programs, and look into what fails.

Nothing is decided by what is in memory alone: what to do next follows from the ledger and the clock. So a
night that was killed goes on where it was, and one machine or many make no difference.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from tempfile import gettempdir

from minimizer import corpus
from minimizer.buckets import Known, Seen, bucket_of, calls_of, dtype_class, read_known
from minimizer.console import Console
from minimizer.nightly import housekeeping
from minimizer.nightly.hands import Hands, leftovers
from minimizer.nightly.history import Past
from minimizer.nightly.ledger import FILE, Ledger, read_events, seen_in
from minimizer.nightly.schedule import LEAST, REPLAY_SHARE, TARGET_SHARE, Standing, slices
from minimizer.nightly.units import Event, Programs, Replays, Target, Unit

LOOK_INTO = 300.0
"""Seconds for looking into one finding: capture, reduction, a verified repro."""

BATCH = 160
"""Generated programs in one unit."""

FEWEST = 20
"""Generated programs that are not divided further when their process is lost twice."""

REPLAYED_AT_ONCE = 6
"""Recordings in one unit: the import is paid once for them."""

TIDY_EVERY = 600.0
"""Seconds between two looks at the disk."""


@dataclass(frozen=True)
class Plan:
    """What a night is asked to do. `budget` in seconds; `programs` off: no generated programs."""

    corpus: Path
    out: Path
    budget: float
    seed: int = 0
    programs: bool = True


class Night:
    """One night in its folder."""

    def __init__(
        self,
        plan: Plan,
        hands: Hands,
        past: Past,
        console: Console,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.plan = plan
        self.console = console
        self.ledger = Ledger(plan.out / FILE)
        self.state = self.ledger.state
        self.known: list[Known] = read_known(plan.corpus / "known.toml")
        self.recorded = corpus.recordings(plan.corpus)
        self._hands = hands
        self._past = past
        self._clock = clock
        self._start = clock()
        self._tidied = clock()
        self._under_way: set[str] = set()
        self._claimed = 0
        self._again: list[Programs] = []

    @property
    def spent(self) -> float:
        """Seconds since this night, or its going on, began."""
        return self._clock() - self._start

    @property
    def left(self) -> float:
        """Seconds of the budget that are left."""
        return self.plan.budget - self.spent

    def go(self) -> None:
        """Work until the budget is spent or there is nothing left to do."""
        known = read_events(self.plan.out / FILE)
        self.ledger.write(e for e in leftovers(self.plan.out / "units") if e not in known)
        if self.state.begun is None:
            first = self._past.next_program if self.plan.programs else 0
            began = {"did": "begin", "at": time.time(), "budget": self.plan.budget, "seed": self.plan.seed}
            self.ledger.write([{**began, "first_program": first, "files": self._files()}])
        else:
            self.ledger.write([{"did": "resume", "at": time.time()}])
        self._claimed = int((self.state.begun or {}).get("first_program", 0))
        self._work(self._replays(), lambda: self.spent < REPLAY_SHARE * self.plan.budget)
        self._work(self._searches(), lambda: self.left > 0)
        self.ledger.write([{"did": "end", "at": time.time()}])

    def _work(self, units: Iterator[Unit | None], wanted: Callable[[], bool]) -> None:
        """Keep all hands busy with units while they are wanted; None means: nothing just now."""
        more = True
        while more or self._hands.busy:
            while more and self._hands.busy < self._hands.count:
                unit = next(units, None) if wanted() else None
                more = more and wanted()
                if unit is None:
                    break
                self._under_way.add(unit.key)
                self._hands.give(unit)
            if not self._hands.busy:
                break
            for unit, events in self._hands.take(5.0):
                self._under_way.discard(unit.key)
                self._learn(unit, events)
            self._tidy()

    def _replays(self) -> Iterator[Unit | None]:
        waiting = [r for r in self.recorded if r.name not in self.state.replayed]
        for k in range(0, len(waiting), REPLAYED_AT_ONCE):
            yield Replays(tuple(str(r.folder) for r in waiting[k : k + REPLAYED_AT_ONCE]))

    def _searches(self) -> Iterator[Unit | None]:
        """What failed and nobody has looked into comes first; targets and programs take turns."""
        targets = self._targets()
        searched = 0.0
        while True:
            suspect = self._next_suspect()
            if suspect is not None:
                if self.left < LOOK_INTO / 4:
                    return
                yield suspect
                continue
            if targets and (not self.plan.programs or searched <= TARGET_SHARE * self.spent):
                unit = targets.pop(0)
                if self.left >= LEAST / 2:  # what several hands have together may be more than the clock has
                    unit = replace(unit, seconds=min(unit.seconds, self.left))
                    searched += unit.seconds
                    yield unit
                continue
            if self.plan.programs and self.left > LOOK_INTO / 2:
                yield self._next_programs()
            elif self._hands.busy:
                yield None
            else:
                return

    def _targets(self) -> list[Target]:
        """The runs of this night's targets that have not been made."""
        files = self._files()
        standings = [
            Standing(
                name,
                had=self._past.seconds(name),
                changed=self._past.file(name) not in ("", digest),
                found=self._past.found(name),
            )
            for name, digest in files.items()
        ]
        share = TARGET_SHARE if self.plan.programs else 1.0
        total = share * self.left * self._hands.count
        found = []
        for part in slices(standings, total):
            seed = self.plan.seed + self._past.nights + part.turn
            path = self.plan.corpus / "models" / f"{part.target}.py"
            out = self.plan.out / "runs" / f"{part.target}-{seed}"
            unit = Target(part.target, str(path), str(out), part.seconds, seed)
            if unit.key not in self.state.targets:
                found.append(unit)
        return found

    def _files(self) -> dict[str, str]:
        """The model files of the corpus and what they hold, as digests."""
        paths = sorted((self.plan.corpus / "models").glob("*.py"))
        return {p.stem: hashlib.sha256(p.read_bytes()).hexdigest()[:16] for p in paths}

    def _next_suspect(self) -> Target | None:
        """The next program to look into; those that a known bucket explains are counted with it."""
        for event in self.state.pending:
            if event["id"] in self._under_way:
                continue
            seen = seen_in(event)
            for bucket, known in self._buckets():
                if known.explains(seen):
                    self.ledger.write([{"did": "duplicate", "id": event["id"], "of": bucket}])
                    break
            else:
                if self._twin_under_way(event):
                    continue
                name = str(event["id"])
                self._under_way.add(name)
                out = str(self.plan.out / "findings" / name)
                seconds = min(LOOK_INTO, max(LOOK_INTO / 3, self.left))
                return Target(name, str(event["path"]), out, seconds, 0, str(event.get("checked", "")))
        return None

    def _twin_under_way(self, event: Event) -> bool:
        """Whether a program with the same calls is being looked into: its bucket may explain this one."""
        seen = seen_in(event)
        others = (self.state.suspects.get(name) for name in self._under_way)
        return any(seen_in(other) == seen for other in others if other is not None)

    def _buckets(self) -> Iterator[tuple[str, Seen]]:
        yield from self.state.seen
        for recording in self.recorded:
            yield recording.bucket, seen_in(dict(recording.status))

    def _next_programs(self) -> Programs:
        if self._again:
            return self._again.pop()
        while self._claimed in self.state.programs:  # done before the night was cut short
            self._claimed += int(self.state.programs[self._claimed]["count"])
        first, self._claimed = self._claimed, self._claimed + BATCH
        without = {
            str(operator)
            for event in self.state.suspects.values()
            if len(event.get("operators", ())) == 1
            for operator in event["operators"]
        }
        folder = str((self.plan.out / "programs").resolve())
        return Programs(first, BATCH, self.plan.seed, folder, tuple(sorted(without)))

    def _learn(self, unit: Unit, events: Sequence[Event]) -> None:
        """Write down what came of a unit, and what follows from it."""
        for event in events:
            if event["did"] == "target" and isinstance(unit, Target):
                followed = self._searched(unit, event)
                plain = [] if unit.checked else [event]
                self.ledger.write([*plain, *followed])
            else:
                self.ledger.write([event])
                if event["did"] == "replayed":
                    self._note_outcome(event)
                if event["did"] == "lost" and isinstance(unit, Programs):
                    self._again += halves(unit)
            self._say(event)

    def _note_outcome(self, event: Event) -> None:
        """Write into a recording how it fared, where that is news for this version of torch."""
        version, outcome = event.get("torch", "unknown"), event["outcome"]
        recording = next((r for r in self.recorded if r.name == event["name"]), None)
        if recording is None or version == "unknown" or outcome == "unusable":
            return
        if recording.status.get("torch", {}).get(version, {}).get("outcome") == outcome:
            return
        try:
            corpus.note_outcome(recording, event, date.today())
        except OSError as problem:
            self.console.say("corpus", f"{recording.folder} cannot be written: {problem.strerror}")

    def _searched(self, unit: Target, event: Event) -> list[Event]:
        """What a run of the pipeline says: a finding, or nothing that could be confirmed."""
        self._under_way.discard(unit.name)
        name = unit.name if unit.checked else unit.key
        if event["status"] == 1:
            try:
                return [finding(name, Path(unit.out))]
            except corpus.CorpusError as problem:
                return [{"did": "unconfirmed", "id": name, "why": str(problem)}]
        if not unit.checked:
            return []
        why = {0: "it does not fail alone", 2: "the run could not be made", 3: "misuse: out of contract"}
        return [{"did": "unconfirmed", "id": name, "why": why.get(event["status"], "the run was cut short")}]

    def _say(self, event: Event) -> None:
        match event["did"]:
            case "replayed":
                self.console.say("replay", f"{event['name']}: {event['outcome']}")
            case "programs":
                self.console.say(
                    "programs",
                    f"{event['judged']} judged in {event['compiles']} compilations, {event['inputs']} inputs",
                )
            case "target":
                said = {0: "nothing failed", 1: "a failure", 2: "unusable", 3: "misuse"}
                self.console.say("search", f"{event['name']}: {said.get(event['status'], 'cut short')}")
            case "lost":
                self.console.say("lost", f"{event['key']}: {event['why']}")

    def _tidy(self) -> None:
        if self._clock() - self._tidied > TIDY_EVERY:
            self._tidied = self._clock()
            housekeeping.prune(Path(gettempdir()), time.time())


def halves(unit: Programs) -> list[Programs]:
    """A unit whose process was lost, in two parts to be given out again; none when it is small already."""
    if unit.count <= FEWEST:
        return []
    middle = unit.count // 2
    rest = replace(unit, first=unit.first + middle, count=unit.count - middle)
    return [rest, replace(unit, count=middle)]


def finding(name: str, run: Path) -> Event:
    """What a run found, as an event. Raises CorpusError when its folder does not tell."""
    summary = corpus.summary_of(run)
    signature = corpus.signature_of(run)
    case = corpus.reduced_case(run)
    verified = summary.get("repro_verified", {})
    if not verified.get("failures"):
        raise corpus.CorpusError("its repro does not fail")
    return {
        "did": "finding",
        "id": name,
        "bucket": bucket_of(case.program, signature),
        "kind": signature.kind,
        "signature": str(signature),
        "message": str(summary.get("message", ""))[:500],
        "calls": list(calls_of(case.program)),
        "classes": sorted({dtype_class(i.meta.dtype) for i in case.program.inputs}),
        "nodes": case.program.operator_count,
        "verified": dict(verified),
        "minimal": bool(summary.get("minimal")),
        "run": str(run),
        "program": (run / "repro.py").read_text(encoding="utf-8", errors="replace"),
        "torch": str(summary.get("versions", {}).get("torch", "unknown")),
    }
