"""Generated programs judged per CPU minute: many in one compilation, and each in one of its own.

Both ways compile whole AOTI packages and try the same inputs; the time for drawing and exporting the programs
is in neither figure. The third figure is for the cheapest judge of one program, Inductor's kernels called
from Python, on one set of inputs.
"""

import random
import tempfile
from pathlib import Path

from minimizer.nightly.generate import Catalogue, programs_of
from minimizer.nightly.pooling import PRELOAD, PoolBench
from minimizer.oracle.case_bench import CaseBench
from minimizer.sandbox import Sandbox
from strategies.programs import singles


def arguments(parser):
    """The options of this benchmark."""
    parser.add_argument("--pool", type=int, default=80, help="programs in the pool (default: 80)")
    parser.add_argument("--alone", type=int, default=8, help="programs judged one by one (default: 8)")
    parser.add_argument("--seed", type=int, default=0, help="which programs (default: 0)")


def main(given):
    """Print the figures; status 0."""
    with Sandbox(PRELOAD) as sandbox, tempfile.TemporaryDirectory() as folder:
        store = Path(folder)
        catalogue = Catalogue(sandbox, folder)
        plans = list(singles(catalogue.operators))
        random.Random(given.seed).shuffle(plans)
        cases = [case for _, case in programs_of(catalogue, plans[: 3 * given.pool])[0]][: given.pool]
        _warm(sandbox, store, cases)
        pooled = _rate(sandbox, len(cases), lambda: PoolBench(sandbox, store).judge(cases))
        few = cases[:: max(1, len(cases) // given.alone)][: given.alone]
        alone = _rate(sandbox, len(few), lambda: [PoolBench(sandbox, store).judge([case]) for case in few])
        cheap = _rate(sandbox, len(few), lambda: _just_in_time(sandbox, store, few))
    print(f"pooled, {len(cases)} programs in one package   {pooled:6.1f} programs per CPU minute")
    print(f"one package each, same inputs       {alone:6.1f}")
    print(f"just in time, one set of inputs     {cheap:6.1f}")
    print(f"ratio at the same level             {pooled / alone:6.1f}")
    return 0


def _warm(sandbox, store, cases):
    """Pay for the precompiled headers before anything is measured."""
    PoolBench(sandbox, store, rounds=1).judge(cases[:1])
    _just_in_time(sandbox, store, cases[:1])


def _just_in_time(sandbox, store, cases):
    bench = CaseBench(sandbox, store)
    for case in cases:
        bench.judge(case, "jit")
    bench.close()


def _rate(sandbox, count, work):
    before = sandbox.cpu_seconds()
    work()
    return 60 * count / (sandbox.cpu_seconds() - before)
