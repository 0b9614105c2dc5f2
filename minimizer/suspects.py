"""Where to look first: what the failure itself names, then what fails when every kind of call is cut apart.

Most reductions end with the first guess that fails: the whole program is then never judged again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import islice
from typing import Any

from minimizer.capture import alike
from minimizer.case import Case
from minimizer.oracle.verdict import Failure, Signature
from minimizer.prosecutor import Prosecutor
from minimizer.reduce.atoms import atoms, kinds
from minimizer.reduce.cut import Observations, keep, units
from minimizer.reduce.journal import Journal, MemoryJournal
from minimizer.reduce.search import is_well_formed


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
    judge: Prosecutor,
    case: Case,
    failure: Failure,
    observed: Observations,
    journal: Journal | None = None,
) -> tuple[Case, Signature] | None:
    """A case that shows the failure at the judge's level, as small as a guess can make it, and how it shows.

    A proxy may word an error in its own way; kind and stage must agree, and the full judge has the last word.
    None when the level does not show the failure at all. What was found before is read from the journal.
    """
    journal = MemoryJournal() if journal is None else journal
    known = journal.noted(f"start {case.key}")
    if known is None:
        known = _first_that_shows(judge, case, failure, observed)
        journal.note(f"start {case.key}", known)
    elif known.get("rate") is not None:
        judge.expect(known["rate"])
    if known.get("signature") is None:
        return None
    start = keep(case, known["names"], observed) if known.get("names") else case
    return None if start is None else (start, Signature(**known["signature"]))


def _first_that_shows(
    judge: Prosecutor, case: Case, failure: Failure, observed: Observations
) -> dict[str, Any]:
    """The ``names`` of calls that show the failure when kept alone (none = all), and its ``signature`` there.

    Of a flaky failure also the ``rate`` at which the whole case shows it, by which guesses are judged: one
    that fails by accident shall not be where the search starts.
    """

    def shows(candidate: Case) -> Signature | None:
        shown = judge.verdict(candidate).failure
        if shown is None or (shown.kind, shown.stage) != (failure.kind, failure.stage):
            return None
        same_words = judge.level == "full" or failure.stage != "run"
        return None if same_words and not alike(shown.signature, failure.signature) else shown.signature

    rate = None
    if judge.repeats > 1:
        whole = shows(case)
        if whole is None:
            return {}
        judge.signature = whole
        rate = judge.calibrate(case)
        if rate == 0:
            return {}
    if case.program.operator_count > SMALL:
        for names in suspects(judge, case, failure, observed):
            guess = keep(case, names, observed)
            if guess is not None and is_well_formed(guess) and judge.takes(guess):
                signature = shows(guess)
                if signature is not None and (rate is None or judge(guess)):
                    return {"names": sorted(names), "signature": asdict(signature), "rate": rate}
    signature = shows(case) if rate is None else judge.signature
    return {} if signature is None else {"signature": asdict(signature), "rate": rate}
