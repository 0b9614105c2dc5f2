"""Which answers would have been right as well? Only an answer outside all of them is wrong.

The program is run again in double precision, several times, with a compiler's freedoms taken at random
(`free`), and an element counts as wrong only when it lies outside the spread of these runs, while eager's own
answer lies inside.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from minimizer.oracle.compare import Mismatch, allowed, error, plain, value_mismatch
from minimizer.oracle.free import HALF, SPREAD_FACTOR

RUNS = 8
"""Noisy runs; the chance that a free element never moves is below 1 % when half of the roundings move it."""

EXTRA_RUNS = 24
MANY = 6
"""Runs more for integer results, and the number of different values from which a choice counts as free."""

NO_WORSE = 4.0
"""Compiled may be so many times as far from double precision as eager is, without further ado."""

PLAIN = 1000.0
"""Errors of so many times the tolerance are not rounding."""

Run = Callable[[int, float, bool], Sequence[Any]]
"""(seed, noise, promote) -> flat outputs of one free execution, mutated inputs included."""


class Envelope:
    """The answers that would have been right, for one set of inputs. Runs are made once, on demand."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._baseline: Sequence[Any] | None = None
        self._samples: list[Sequence[Any]] = []
        self._extra: list[Sequence[Any]] = []
        self._promoted = True
        self.unavailable = ""
        self.refused: list[str] = []

    def _begin(self) -> bool:
        """Run the baseline: in double precision where every operator can, else as the program is."""
        if self._baseline is None and not self.unavailable:
            for promote in (True, False):
                try:
                    self._baseline = self._run(0, 0.0, promote)
                    # Some operators take double precision only until they are handed unusual operands.
                    self._samples = [self._run(1, 1.0, promote)]
                    self._promoted = promote
                    self.unavailable = ""
                    break
                except Exception as problem:  # noqa: BLE001 (not every operator runs in double precision)
                    self._baseline = None
                    self.unavailable = f"{type(problem).__name__}: {problem}".splitlines()[0][:200]
        return self._baseline is not None

    def _sample(self) -> None:
        seeds = range(len(self._samples) + 1, RUNS + 1)
        self._samples += self._noisy(seeds)

    def _noisy(self, seeds: range) -> list[Sequence[Any]]:
        """Noisy runs; one whose garbage an operator refuses (an index out of range) tells nothing more."""
        found = []
        for seed in seeds:
            try:
                found.append(self._run(seed, 1.0, self._promoted))
            except Exception as problem:  # noqa: BLE001 (any operator may refuse what no program would give it)
                self.refused.append(f"{type(problem).__name__}: {problem}"[:200])
        return found

    def _no_worse(self, actual: torch.Tensor, expected: torch.Tensor, base: Any) -> bool:
        """Whether compiled is about as far from the baseline as eager is, measured in tolerances."""
        floating = expected.is_floating_point() or expected.is_complex()
        if not self._promoted or not floating or not isinstance(base, torch.Tensor):
            return False
        if base.shape != expected.shape:
            return False
        baseline = _rounded(plain(base), expected.dtype)
        limit = allowed(baseline, expected.dtype)
        compiled, eager = ((error(side, baseline) / limit).max() for side in (actual, expected))
        # Tolerances of half precision are one or two units in the last place: four times that is no rounding.
        least = 0.5 if expected.dtype in HALF else 1.0
        # More than rounding is memory that nobody wrote to, or chaos: it says nothing of the other elements.
        rounding = NO_WORSE * eager.clamp(min=least, max=PLAIN)
        return bool(compiled <= rounding) and bool(torch.isfinite(compiled))

    def _more(self) -> Sequence[Sequence[Any]]:
        """Further noisy runs, for choices of which eight runs may miss one."""
        if not self._extra and self._baseline is not None:
            seeds = range(RUNS + 1, RUNS + 1 + EXTRA_RUNS)
            self._extra = self._noisy(seeds)
        return self._extra

    def _shape_is_free(self, k: int, shape: torch.Size) -> bool:
        """Whether the size of an output depends on rounded data, so that other sizes are as right."""
        self._sample()
        samples = [sample[k] for sample in (*self._samples, self._baseline or ())]
        seen = {sample.shape for sample in samples if isinstance(sample, torch.Tensor)}
        return len(seen) > 1 or seen == {shape}

    def judge(self, mismatch: Mismatch, actual: Any, expected: Any) -> Mismatch | None:
        """The mismatch with only the elements that no free execution explains, or None."""
        if mismatch.flavour not in ("values", "shape") or not self._begin():
            return mismatch
        assert self._baseline is not None
        k = mismatch.index
        if mismatch.flavour == "shape":
            return None if self._shape_is_free(k, actual.shape) else mismatch
        if isinstance(expected, torch.Tensor) and self._no_worse(
            plain(actual), plain(expected), self._baseline[k]
        ):
            return None
        self._sample()
        if not isinstance(expected, torch.Tensor):
            seen = {sample[k] for sample in (*self._samples, self._baseline)}
            return mismatch if seen == {expected} else None
        dtype = expected.dtype
        actual, expected = plain(actual), plain(expected)
        samples = [plain(sample[k]) for sample in self._samples if isinstance(sample[k], torch.Tensor)]
        base = self._baseline[k]
        if not isinstance(base, torch.Tensor) or any(s.shape != expected.shape for s in (base, *samples)):
            return None  # even the shape is free: a data-dependent size
        baseline = _rounded(plain(base), dtype)
        spread = torch.stack([error(_rounded(s, dtype), baseline) for s in samples]).amax(0)
        margin = allowed(baseline, dtype) + SPREAD_FACTOR * spread
        eager_error = error(expected, baseline)
        eager_right = eager_error <= margin
        limit = margin + 3 * torch.where(eager_right, eager_error, torch.zeros_like(eager_error))
        compiled_error = error(actual, baseline)
        if not (expected.is_floating_point() or expected.is_complex()):
            # Between two free integers lies no free integer: an index is one of the tied ones or it is wrong.
            chosen = [*samples, baseline, *(plain(sample[k]) for sample in self._more())]
            wrong = (torch.stack([actual != sample for sample in chosen]).all(0)) & eager_right
            wrong &= _distinct(chosen) < MANY
        else:
            wrong = (compiled_error > limit) & eager_right & ~torch.isinf(spread)
        if mismatch.wrong is not None:
            wrong &= mismatch.wrong
        if not bool(wrong.any()):
            return None
        distance = error(actual, expected)
        ratio = float((compiled_error / limit.clamp(min=1e-12))[wrong].max())
        return value_mismatch(k, actual, expected, wrong, distance, ratio)


def _distinct(samples: Sequence[torch.Tensor]) -> torch.Tensor:
    """How many different values each element takes."""
    values = torch.stack(list(samples)).to(torch.float64).sort(0).values
    return (values[1:] != values[:-1]).sum(0) + 1


def _rounded(value: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """A free answer as the program would return it, so that overflow to infinity compares as such."""
    return value.to(dtype) if value.dtype != dtype else value
