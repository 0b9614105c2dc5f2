"""A run over an AOTI package: it has no graph, so it can be described and inputs can be checked, no more.

Running it on inputs of our own would prove nothing: what eager would answer is not known, nor whether eager
would accept them.
"""

from __future__ import annotations

from dataclasses import replace

from minimizer import contract
from minimizer.console import Console
from minimizer.folder import RunFolder
from minimizer.handover.record import RunRecord
from minimizer.handover.reports import write_reports
from minimizer.options import MISUSE, NONE, Options, Unusable
from minimizer.oracle.requests import TASKS
from minimizer.sandbox import Sandbox, TaskError, WorkerLost
from minimizer.targets.package import Package, read_package
from minimizer.targets.recognise import BRING


def describe_only(options: Options) -> Package:
    """The package, where inputs of the person's are to be checked. Raises Unusable otherwise."""
    package = read_package(options.target)
    if not options.check_inputs:
        raise Unusable(
            f"{options.target.name} is an AOTI package ({package}); it holds no graph, so there is nothing "
            "to compare with and nothing to reduce: bring what it was compiled from, "
            f"{BRING}; inputs can be checked against the package with --check-inputs FILE"
        )
    if package.program is None:
        raise Unusable(
            f"{options.target.name} does not say what inputs it takes ({package}); bring what it was "
            f"compiled from, {BRING}"
        )
    return package


def check_inputs(
    options: Options, package: Package, console: Console, folder: RunFolder, sandbox: Sandbox
) -> tuple[int, RunRecord]:
    """Judge the person's inputs against what the package promises to accept. Raises Unusable."""
    assert package.program is not None
    console.say("target", f"{options.target.name}: AOTI package, {package}")
    worker = sandbox.worker()
    try:
        values = worker.call(TASKS + "read_inputs", options.check_inputs, timeout=120.0)
    except TaskError as problem:
        raise Unusable(problem.message if problem.exception == "Unusable" else str(problem)) from None
    except WorkerLost as lost:
        raise Unusable(f"--check-inputs {options.check_inputs} cannot be read: {lost}") from None
    finally:
        worker.close()
    broken = contract.check(package.program, values)
    record = RunRecord(target=options.target.name, command=options.command)
    if broken is not None:
        console.say("misuse", str(broken), always=True)
        record = replace(record, status="misuse", message=str(broken), cause="misuse")
    else:
        said = "the inputs fit all that the package says of them; without a graph no more can be told"
        console.say("result", said, always=True)
        record = replace(record, status="none")
    write_reports(folder, record)
    return (NONE if broken is None else MISUSE), record
