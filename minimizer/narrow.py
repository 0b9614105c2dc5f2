"""The reducer and the oracle brought together: which stage judges, and what counts as the same failure.

A candidate is never run past the stage where the failure shows: a lowering exception needs no C++ compiler,
a kernel that does not compile needs no wrapper, a wrong value seldom needs the package. Such a cheaper judge
is a proxy. It is used when it shows the failure on the whole program, the result is confirmed by the full
judge, and where the two disagree the full one takes over.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

import networkx as nx

from minimizer.capture import alike
from minimizer.case import Case
from minimizer.oracle.bench import CaseBench
from minimizer.oracle.verdict import Failure, Signature, Verdict
from minimizer.program import Program
from minimizer.reduce.atoms import atoms, kinds
from minimizer.reduce.cut import Observations, keep, units
from minimizer.reduce.journal import Journal
from minimizer.reduce.minimality import Certificate, certificate
from minimizer.reduce.passes import PASSES, Pass
from minimizer.reduce.search import Progress, Reduction, is_well_formed, reduce

LEVELS = {"lower": ("lower", "full"), "cxx": ("kernel", "full"), "run": ("jit", "full")}
"""Judges to try, cheapest first, by the stage of the failure. Other stages need the full one."""


def levels(path: str, stage: str) -> tuple[str, ...]:
    """The judges to try for a failure in a stage, cheapest first; ``torch.compile`` has one only."""
    return LEVELS.get(stage, ("full",)) if path == "aoti" else ("full",)


@dataclass
class Prosecutor:
    """Judges candidates at one level against one signature, and keeps what else it sees.

    `signature` is what the failure looks like at this level: a proxy words its errors in its own way. With
    `dynamic`, candidates without any dynamic dim are turned away unjudged, and `turned_away` is set; with
    `joined`, so are those in which some call stands by itself (it would be there for its dim only).
    """

    bench: CaseBench
    level: str
    signature: Signature
    repeats: int = 1
    also: dict[Signature, tuple[Case, Failure]] = field(default_factory=dict)
    judged: int = 0
    dynamic: bool = False
    joined: bool = False
    turned_away: bool = False

    def takes(self, case: Case) -> bool:
        """Whether the case may be judged at all."""
        program = case.program
        taken = not self.dynamic or (
            program.dynamic_dims > 0 and (not self.joined or hangs_together(program))
        )
        self.turned_away |= not taken
        return taken

    def verdict(self, case: Case) -> Verdict:
        """The first failing verdict of up to `repeats`, else the last one."""
        verdict = Verdict("invalid")
        for _ in range(self.repeats):
            verdict = self.bench.judge(case, self.level)
            self.judged += 1
            if verdict.failed or verdict.status == "invalid":
                break
        return verdict

    def __call__(self, case: Case) -> bool:
        """Whether the case still shows the very same failure."""
        if not self.takes(case):
            return False
        failure = self.verdict(case).failure
        if failure is None:
            return False
        if alike(failure.signature, self.signature):
            return True
        self.also.setdefault(failure.signature, (case, failure))
        return False


@dataclass(frozen=True)
class Narrowed:
    """A reduced case that the full judge has confirmed (`failure`), and how it was reached."""

    case: Case
    failure: Failure
    reduction: Reduction
    certificate: Certificate | None
    level: str
    note: str = ""


def kernel_words(failure: Failure) -> frozenset[str]:
    """Operator names that the names of the generated kernels in an error may hold.

    ``_softmax_add`` may be `_softmax` and `add`: nothing tells which underscores part two operators.
    """
    text = f"{failure.message}\n{failure.detail}"
    names = re.findall(r"\b(?:cpp|triton)_(?:poi_|red_|per_)?fused_(\w+?)_\d+\b", text)
    words: set[str] = set()
    for name in names:
        parts = name.split("_")
        ends = range(1, len(parts) + 1)
        words.update("_".join(parts[start:end]) for end in ends for start in range(end))
    return frozenset(words - {""})


def hints(case: Case, failure: Failure) -> Iterator[frozenset[str]]:
    """Sets of calls that the failure itself points at, the most likely first."""
    program = case.program
    operators = {n.name: n.target.split(".")[1] for n in program.nodes if n.target.count(".") >= 1}
    if failure.op:
        wanted = failure.op.split(".")[1] if "." in failure.op else failure.op
        for name, operator in operators.items():
            if operator == wanted:
                yield frozenset({name})
    words = kernel_words(failure)
    if words:
        named = [name for name in units(program) if operators.get(name) in words]
        if len(named) <= TELLING:
            yield from (frozenset({name}) for name in named)
        if len(named) > 1:
            yield frozenset(named)


SMALL = 4
"""Up to this many calls the whole program is as cheap to judge as any guess."""

TELLING = 3
"""A kernel made from more calls than this names too many to try them one by one."""

GUESSES = 8
"""Single calls tried before the whole program is judged."""


def suspects(
    judge: Prosecutor, case: Case, failure: Failure, observed: Observations
) -> Iterator[frozenset[str]]:
    """Sets of calls to try alone: those that the failure names, then those that fail when cut apart."""
    yield from islice(hints(case, failure), GUESSES)
    names = kinds(case.program)
    shown, owners = _apart(judge, case, observed, names)
    if shown is None:
        return
    if shown.outputs:
        for name in list(dict.fromkeys(owners[k] for k in shown.outputs if k < len(owners)))[:GUESSES]:
            yield frozenset({name})
        return
    while len(names) > 1:
        half = names[: len(names) // 2]
        names = half if _apart(judge, case, observed, half)[0] is not None else names[len(half) :]
    yield frozenset(names)


def _apart(
    judge: Prosecutor, case: Case, observed: Observations, names: Sequence[str]
) -> tuple[Failure | None, tuple[str, ...]]:
    """How the named calls fail when they are judged at once, each by itself."""
    pool = atoms(case, observed, names)
    if pool is None:
        return None, ()
    shown = judge.verdict(pool[0]).failure
    return (shown if shown is not None and shown.kind == judge.signature.kind else None), pool[1]


def starting_point(
    judge: Prosecutor, case: Case, failure: Failure, observed: Observations
) -> tuple[Case, Signature] | None:
    """A case that shows the failure at the judge's level, as small as a guess can make it, and how it shows.

    A proxy may word an error in its own way; kind and stage must agree, and the full judge has the last word.
    None when the level does not show the failure at all.
    """

    def shows(candidate: Case) -> Signature | None:
        shown = judge.verdict(candidate).failure
        if shown is None or (shown.kind, shown.stage) != (failure.kind, failure.stage):
            return None
        same_words = judge.level == "full" or failure.stage != "run"
        return None if same_words and not alike(shown.signature, failure.signature) else shown.signature

    if case.program.operator_count > SMALL:
        for names in suspects(judge, case, failure, observed):
            guess = keep(case, names, observed)
            if guess is not None and is_well_formed(guess) and judge.takes(guess):
                signature = shows(guess)
                if signature is not None:
                    return guess, signature
    signature = shows(case)
    return None if signature is None else (case, signature)


STATIC_SAVES = 2
"""Calls that a result without any dynamic dim must save to be preferred: one more call, joined with the
others, is a fair price for a dynamic program."""


def hangs_together(program: Program) -> bool:
    """Whether all calls are joined through the values that they read: no call stands by itself."""
    flow = nx.Graph((source, n.name) for n in program.nodes for source in n.inputs)
    flow.add_nodes_from(n.name for n in program.nodes)
    return nx.number_connected_components(flow) <= 1


def narrow(
    bench: CaseBench,
    case: Case,
    failure: Failure,
    observed: Observations,
    *,
    repeats: int,
    deadline: Callable[[], bool],
    interrupted: Callable[[], bool],
    journal: Journal,
    on_progress: Callable[[Progress], None],
    on_accept: Callable[[Case], None],
    also: dict[Signature, tuple[Case, Failure]],
    passes: Sequence[Pass] = PASSES,
) -> Narrowed | None:
    """Reduce a case, confirm the result with the full judge, and certify it.

    None when the translated program does not show the failure at any level.
    """
    notes: list[str] = []
    for level in levels(case.settings.path, failure.stage):
        dynamic, joined = case.program.dynamic_dims > 0, hangs_together(case.program)
        judge = Prosecutor(bench, level, failure.signature, repeats, dynamic=dynamic, joined=joined)
        start = starting_point(judge, case, failure, observed)
        if start is None:
            continue
        judge.signature = start[1]
        watch: dict[str, Any] = {"deadline": deadline, "on_progress": on_progress, "passes": passes}
        record = _AtLevel(journal, level)
        result = reduce(start[0], observed, judge, on_accept=on_accept, journal=record, **watch)
        if judge.turned_away and result.complete and result.case.program.operator_count > 1:
            # Perhaps the failure has nothing to do with what is dynamic, which then stands in the way.
            free = replace(judge, dynamic=False)
            freely = _AtLevel(journal, f"{level} static")
            static = reduce(result.case, observed, free, journal=freely, **watch)
            saved = result.case.program.operator_count - static.case.program.operator_count
            if saved >= STATIC_SAVES:
                judge, result, record = free, static, freely
        also.update(judge.also)
        if interrupted():
            raise KeyboardInterrupt
        confirmed = confirm(bench, result.case, failure, repeats)
        if confirmed is None:
            notes.append(f"the {level} judge was misled")
            continue
        proof = (
            certificate(
                result.case,
                observed,
                judge,
                deadline=deadline,
                journal=record,
                static_judge=replace(judge, dynamic=False),
            )
            if result.complete
            else None
        )
        return Narrowed(result.case, confirmed, result, proof, level, "; ".join(notes))
    return None


class _AtLevel:
    """A journal's entries of one level: a proxy's answers are not the full judge's."""

    def __init__(self, journal: Journal, level: str) -> None:
        self._journal = journal
        self._level = level

    def known(self, key: str) -> bool | None:
        return self._journal.known(f"{self._level} {key}")

    def record(self, key: str, interesting: bool, **about: Any) -> None:
        self._journal.record(f"{self._level} {key}", interesting, **about)


def confirm(bench: CaseBench, case: Case, failure: Failure, repeats: int) -> Failure | None:
    """The failure that the full judge sees, when it is the same one."""
    for _ in range(repeats):
        shown = bench.judge(case, "full", fresh=True).failure
        if shown is not None and alike(shown.signature, failure.signature):
            return shown
    return None
