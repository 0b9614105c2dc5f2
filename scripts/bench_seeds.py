"""Is every failure of a folder found, whatever the seed, and after how many inputs?

For each model file of the folder that is said to fail (`cases.json` or `expected.json`), the target is
compiled once and searched anew for each seed. A failure within the fixed opening comes at the same input for
every seed and is searched for once. `--without-mined` leaves out the sizes that are read off the generated
code.
"""

import json
import tempfile
import time
from pathlib import Path

from minimizer import fuzz
from minimizer.input_space import InputSpace, mine_constants
from minimizer.oracle.requests import PRELOAD, TargetRequest
from minimizer.oracle.target_bench import TargetBench
from minimizer.sandbox import Sandbox


def arguments(parser):
    parser.add_argument("folder", type=Path, help="model files, with a cases.json or expected.json")
    parser.add_argument("names", nargs="*", help="only these")
    parser.add_argument("--seeds", type=int, default=10, help="seeds tried (default: 10)")
    parser.add_argument("--seconds", type=float, default=120.0, help="of fuzzing for each (default: 120)")
    parser.add_argument("--without-mined", action="store_true", help="no sizes from generated code")


def main(given):
    listed = next(p for p in map(given.folder.joinpath, ("cases.json", "expected.json")) if p.exists())
    cases = json.loads(listed.read_text())
    names = [
        n for n in sorted(cases) if cases[n]["expect"] == "failure" and (not given.names or n in given.names)
    ]
    print("| model | found | at input (least, most) | seconds of fuzzing (most) | as |")
    print("|---|---|---|---|---|")
    missed = 0
    with Sandbox(PRELOAD) as sandbox:
        sandbox.warm()
        for name in names:
            rows = list(_searches(sandbox, given, given.folder / f"{cases[name].get('file', name)}.py"))
            found = [row for row in rows if row[0] is not None]
            missed += len(found) < len(rows)
            inputs = [tried for _, tried, _ in found]
            spread = f"{min(inputs)}, {max(inputs)}" if found else "-"
            slowest = f"{max(took for *_, took in rows):.0f}"
            kinds = ", ".join(sorted({failure.kind for failure, *_ in found}))
            print(f"| {name} | {len(found)} of {len(rows)} | {spread} | {slowest} | {kinds} |", flush=True)
    print(f"{len(names) - missed} of {len(names)} always found")
    return 1 if missed else 0


def _searches(sandbox, given, path):
    """For each seed: the failure or None, at which input, and after how many seconds."""
    with tempfile.TemporaryDirectory() as store:
        request = TargetRequest(str(path.resolve()), store)
        bench = TargetBench(sandbox, request, sandbox.scratch / f"{path.stem}.pt2")
        info = bench.open()
        failure = bench.compile(240.0)
        if failure is not None:
            yield from [(failure, 0, 0.0)] * given.seeds
            bench.close()
            return
        mined = () if given.without_mined else mine_constants(bench.generated_code())
        space = InputSpace(info.program, mined)
        opening = 1 + sum(1 for _ in space.opening())
        for seed in range(given.seeds):
            failure, at, took, tried = _search(bench, space, info, seed, given.seconds)
            yield failure, at, took
            if failure is not None and tried <= opening:
                yield from [(failure, at, took)] * (given.seeds - seed - 1)
                break
        bench.close()


def _search(bench, space, info, seed, seconds):
    started = time.monotonic()
    until = started + seconds
    report = fuzz.search(
        space,
        bench.judge_many,
        info.examples,
        seed=seed,
        stateful=info.stateful,
        most=10**9,
        give_up=lambda: time.monotonic() > until,
    )
    took = time.monotonic() - started
    if report.finding is None:
        return None, 0, took, report.tried
    return report.finding.failure, report.finding.tried, took, report.tried
