"""Inputs judged per second against one artifact, beside a bare loop: run compiled, run eager, compare.

The bare loop is what a person would write: the same inputs, made beforehand, one after the other through both
sides and `torch.testing.assert_close`. The search draws each input, makes it, keeps copies for both sides,
compares values, dtypes, strides and what was written to, survives a crash of any of them, and knows which.
The ratio of the two is the price of all that; half the bare loop's speed is what is aimed at. On a machine
that does other work as well, compare CPU seconds instead.
"""

import tempfile
import time
from pathlib import Path

from minimizer import fuzz
from minimizer.input_space import InputSpace, mine_constants
from minimizer.oracle.requests import PRELOAD, TASKS, TargetRequest
from minimizer.oracle.target_bench import TargetBench
from minimizer.sandbox import Sandbox

MODEL = Path(__file__).resolve().parent.parent / "corpus" / "models" / "mlp_dynamic_batch.py"

WANTED = 0.5
"""Least share of the bare loop's speed."""


def arguments(parser):
    parser.add_argument("target", nargs="?", type=Path, default=MODEL, help="a model file (default: an MLP)")
    parser.add_argument("--inputs", type=int, default=2000, help="inputs judged (default: 2000)")


def main(given):
    with Sandbox(PRELOAD) as sandbox, tempfile.TemporaryDirectory() as store:
        sandbox.warm()
        bench = TargetBench(
            sandbox, TargetRequest(str(given.target.resolve()), store), sandbox.scratch / "bench.pt2"
        )
        info = bench.open()
        failure = bench.compile(600.0)
        if failure is not None:
            print(f"{given.target.name} does not compile: {failure.message.splitlines()[0]}")
            return 2
        space = InputSpace(info.program, mine_constants(bench.generated_code()))
        seen, verdicts = [], []

        def judge(batch):
            found = bench.judge_many(batch)
            seen.extend(calls[-1] for calls in batch[: len(found)])
            verdicts.extend(found)
            return found

        started, used = time.perf_counter(), sandbox.cpu_seconds()
        report = fuzz.search(
            space,
            judge,
            info.examples,
            seed=0,
            stateful=info.stateful,
            most=given.inputs,
        )
        took, used = time.perf_counter() - started, sandbox.cpu_seconds() - used
        judged = [v for v, verdict in zip(seen, verdicts, strict=True) if verdict.status == "pass"]
        bare_used = sandbox.cpu_seconds()
        bare = bench.ask(TASKS + "bare_loop", judged, timeout=600.0)
        bare_used = sandbox.cpu_seconds() - bare_used
        bench.close()
    if report.finding:
        print(f"{given.target.name} fails at input {report.tried}; give a healthy model")
        return 2
    ours, theirs = report.tried / took, len(judged) / bare
    print(f"search     {report.tried} inputs, {ours:.0f}/s, {used:.2f} CPU s ({len(judged)} passed)")
    print(f"bare loop  {len(judged)} inputs, {theirs:.0f}/s, {bare_used:.2f} CPU s, making them included")
    print(f"ratio      {ours / theirs:.2f} (wanted: {WANTED} or more)")
    return 0 if ours >= WANTED * theirs else 1
