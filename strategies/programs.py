"""Programs described by a few integers: which operators, on which samples, fed by which earlier results.

A description holds no tensor, no shape and no code. The catalogue of operators is handed in as data; turning
a description into a graph, and asking eager and export whether it is legal, is the caller's work. Single
calls come first, one after the other through the whole catalogue, since most bugs need one; chains are drawn.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import hypothesis
from hypothesis import strategies as st

MOST_CALLS = 4
"""Calls in a drawn chain, at most: more only hides which one is at fault."""

FRESH = 0
"""A feed that asks for an input of the program's own."""


@dataclass(frozen=True)
class Operator:
    """One entry of the catalogue: its name, the dtypes it takes, and how many samples there may be.

    Raises ValueError when there is no dtype or no sample.
    """

    name: str
    dtypes: tuple[str, ...]
    samples: int = 1

    def __post_init__(self) -> None:
        if not self.dtypes or self.samples < 1:
            raise ValueError(f"operator {self.name}: give at least one dtype and one sample")


@dataclass(frozen=True)
class Call:
    """A call: operator and dtype by name, the number of the sample, and where its tensors come from.

    `feeds` says for each tensor argument, in order, how many results back to look for its value: 1 is the
    last result so far, `FRESH` an input of its own. Arguments past the end of `feeds` are fresh, and so is
    one whose source does not fit in dtype or shape.
    """

    operator: str
    dtype: str
    sample: int = 0
    feeds: tuple[int, ...] = ()


@dataclass(frozen=True)
class Plan:
    """A description of a program: calls in order."""

    calls: tuple[Call, ...]


def singles(catalogue: Sequence[Operator]) -> Iterator[Plan]:
    """Every operator by itself: first with each dtype's first sample, dtype by dtype, then the next sample.

    >>> [plan.calls[0].dtype for plan in singles([Operator("relu", ("float32", "int8"), 2)])]
    ['float32', 'int8', 'float32', 'int8']
    """
    most_dtypes = max((len(o.dtypes) for o in catalogue), default=0)
    for sample in range(max((o.samples for o in catalogue), default=0)):
        for k in range(most_dtypes):
            for operator in catalogue:
                if sample < operator.samples and k < len(operator.dtypes):
                    yield Plan((Call(operator.name, operator.dtypes[k], sample),))


def plans(catalogue: Sequence[Operator], *, most_calls: int = MOST_CALLS) -> st.SearchStrategy[Plan]:
    """Draws chains. Shrinks towards fewer calls, earlier operators, first dtypes and samples, fresh inputs.

    Raises ValueError for an empty catalogue.

    >>> from hypothesis import find
    >>> two = [Operator("relu", ("float32",)), Operator("sum", ("float32", "int8"))]
    >>> find(plans(two), lambda plan: len(plan.calls) == 2)
    Plan(calls=(Call(operator='relu', dtype='float32', sample=0, feeds=(1,)), \
Call(operator='relu', dtype='float32', sample=0, feeds=(1,))))
    """
    if not catalogue:
        raise ValueError("the catalogue is empty: there is nothing to draw from")

    most_dtypes = max(len(operator.dtypes) for operator in catalogue)
    most_samples = max(operator.samples for operator in catalogue)

    # Every operator costs the same number of choices, or one with fewer dtypes would count as simpler.
    @st.composite
    def call(draw: st.DrawFn) -> Call:
        operator = draw(st.sampled_from(catalogue))
        dtype = operator.dtypes[draw(st.integers(0, most_dtypes - 1)) % len(operator.dtypes)]
        sample = draw(st.integers(0, most_samples - 1)) % operator.samples
        # A chain is for what two calls do together, so the first argument reads the last result.
        rest = draw(st.lists(st.integers(FRESH, most_calls), max_size=2))
        return Call(operator.name, dtype, sample, (1, *rest))

    return st.lists(call(), min_size=1, max_size=most_calls).map(lambda calls: Plan(tuple(calls)))


def drawn_plans(catalogue: Sequence[Operator], count: int, seed: int) -> list[Plan]:
    """`count` chains of two calls or more, each once, as far as there are so many; the same for a seed."""
    found: dict[Plan, None] = {}

    def collect(plan: Plan) -> None:
        if len(plan.calls) > 1 and len(found) < count:
            found[plan] = None

    for turn in range(3):
        if len(found) < count:
            draw = hypothesis.settings(
                max_examples=2 * count,
                database=None,
                deadline=None,
                derandomize=False,
                phases=(hypothesis.Phase.generate,),
                suppress_health_check=list(hypothesis.HealthCheck),
            )(hypothesis.given(plans(catalogue))(collect))
            hypothesis.seed(1000 * seed + turn)(draw)()
    return list(found)
