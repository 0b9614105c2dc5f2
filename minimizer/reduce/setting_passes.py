"""Passes over how the program is compiled and run.

Whatever is not needed to fail goes back to its default, since each setting left over reads as part of the
cause.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from minimizer.case import MANNERS, Case
from minimizer.reduce.cut import Observations
from minimizer.reduce.proposals import Proposals, one_by_one


def default_settings(case: Case, observed: Observations) -> Proposals:
    """All settings at their defaults, else each by itself."""
    settings = case.settings
    plain = replace(settings, config=(), environment=(), manner="")
    if plain != settings and (yield replace(case, settings=plain)):
        return
    yield from one_by_one(case, lambda current: (less for _, less in without_each_setting(current)))


_TOGETHER = frozenset({"ASAN_OPTIONS", "LD_PRELOAD", "TORCHINDUCTOR_CPP_MARCH"})
"""Variables that build and run code with AddressSanitizer: one without the others means nothing."""


def _separable(environment: tuple[tuple[str, str], ...]) -> Iterator[tuple[tuple[str, str], ...]]:
    """The variables that can be left out by themselves, each alone, and those that go together."""
    together = tuple(entry for entry in environment if entry[0] in _TOGETHER)
    alone = tuple(entry for entry in environment if entry not in together)
    yield from ((entry,) for entry in alone)
    if together:
        yield together


def without_each_setting(case: Case) -> Iterator[tuple[str, Case]]:
    """Each setting that is not at its default, in words, with the case that leaves it out."""
    settings = case.settings
    for key, value in settings.config:
        rest = tuple(entry for entry in settings.config if entry[0] != key)
        yield f"{key}={value!r}", replace(case, settings=replace(settings, config=rest))
    for gone in _separable(settings.environment):
        left = tuple(entry for entry in settings.environment if entry not in gone)
        said = " ".join(f"{key}={value}" for key, value in gone)
        yield said, replace(case, settings=replace(settings, environment=left))
    if settings.manner:
        yield f"called {MANNERS[settings.manner]}", replace(case, settings=replace(settings, manner=""))
