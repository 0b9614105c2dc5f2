"""What the launches of one run were given and gave back, and what became of each under examination.

Written line by line while the program runs, since the process may not live to report it. No torch here.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from minimizer.case import Value, value_from_json, value_to_json
from minimizer.oracle.kernels import KernelSource
from minimizer.program import Program

LOG = "launches.jsonl"
"""The file in the store that a recording is written to."""


@dataclass(frozen=True)
class Argument:
    """One argument of a call: the variable or expression, and the tensor or number before the call.

    `after` is set for tensors that the call may have written to, once it has returned.
    """

    name: str
    before: Value | int | float | None = None
    after: Value | None = None


@dataclass(frozen=True)
class Step:
    """One call that the wrapper makes.

    `turn` counts the calls of the program itself, from 0; `finished` tells whether this one returned,
    `problem` what it raised.
    """

    index: int
    callee: str
    line: int
    kernel: bool
    args: tuple[Argument, ...] = ()
    results: tuple[tuple[str, Value], ...] = ()
    finished: bool = False
    problem: str = ""
    turn: int = 0


@dataclass(frozen=True)
class Recording:
    """The calls of one run, in order.

    `shown` words the failure of that run, empty when there was none; `raised` is what a line of the wrapper
    other than a call raised, with that line.
    """

    steps: tuple[Step, ...] = ()
    shown: str = ""
    raised: str = ""

    @property
    def last(self) -> Step | None:
        """The call that was under way when the run ended without reporting, or that raised."""
        open_ones = [step for step in self.steps if not step.finished or step.problem]
        return open_ones[-1] if open_ones else None


def _plain(value: Any) -> Any:
    return value_to_json(value) if isinstance(value, Value) else value


def _read(plain: Any) -> Any:
    return value_from_json(plain) if isinstance(plain, Mapping) else plain


def start_line(step: Step) -> str:
    """The line that is written before a call."""
    args = [[arg.name, _plain(arg.before)] for arg in step.args]
    return json.dumps([step.index, step.callee, step.line, step.kernel, args, step.turn])


def end_line(step: Step) -> str:
    """The line that is written after a call."""
    after = [_plain(arg.after) for arg in step.args]
    results = [[name, _plain(value)] for name, value in step.results]
    return json.dumps({"index": step.index, "after": after, "results": results, "problem": step.problem})


def read_recording(lines: Iterable[str]) -> Recording:
    """Read a recording back, as far as it was written. A last line that is cut off is left out."""
    steps: dict[int, Step] = {}
    shown, raised = "", ""
    for line in lines:
        try:
            plain = json.loads(line)
        except ValueError:
            break
        if isinstance(plain, list):
            index, callee, number, kernel, args, turn = plain
            given = tuple(Argument(name, _read(before)) for name, before in args)
            steps[index] = Step(index, callee, number, kernel, given, turn=turn)
        elif "shown" in plain:
            shown = plain["shown"]
        elif "raised" in plain:
            raised = plain["raised"]
        else:
            step = steps[plain["index"]]
            pairs = zip(step.args, plain["after"], strict=True)
            args = tuple(replace(arg, after=_read(after)) for arg, after in pairs)
            results = tuple((name, _read(value)) for name, value in plain["results"])
            steps[step.index] = replace(
                step, args=args, results=results, finished=True, problem=plain["problem"]
            )
    return Recording(tuple(steps.values()), shown, raised)


@dataclass(frozen=True)
class Finding:
    """What examining one call has shown.

    `verdict` is ``right``, ``wrong``, ``raised`` or ``unjudged``; `figures` the worst disagreement in words;
    `output` the argument that is wrong; `calls` the operators that the call was generated from; `reason` why
    it could not be judged; `via` earlier kernels whose results are no values of the graph and so were judged
    together with this one.
    """

    step: int
    name: str
    kernel: bool
    verdict: str
    calls: tuple[str, ...] = ()
    figures: str = ""
    output: str = ""
    reason: str = ""
    via: tuple[str, ...] = ()


@dataclass(frozen=True)
class Examination:
    """Every call of a recorded run, judged alone on what it was given; and the graphs, run in eager.

    `graphs` says of each stage of the graph what it answers when it is interpreted in eager: empty means the
    right answer. `aoti` is the code of each kernel that AOTInductor generates, `differing` names those that
    the run had otherwise.
    """

    findings: tuple[Finding, ...] = ()
    graphs: tuple[tuple[str, str], ...] = ()
    aoti: Mapping[str, str] = field(default_factory=dict)
    differing: tuple[str, ...] = ()


@dataclass(frozen=True)
class KernelArgument:
    """An argument of a kernel that stands alone: its C++ name, and a tensor before the call or a number.

    `output` names the value of the reference program that it must hold after the call, where there is one.
    The program's inputs bear the names of the arguments. `alias` is an earlier argument that is the same
    tensor, `variable` what the argument is in the wrapper.
    """

    name: str
    before: Value | int | float
    variable: str = ""
    output: str = ""
    alias: str = ""


@dataclass(frozen=True)
class KernelCase:
    """A kernel with recorded arguments and the program that says in eager what it should compute.

    `calls` are the operators that it was generated from.

    `extra` are inputs of that program which the kernel is not given: constants, or tensors of which only the
    size matters. `scalar` is the kernel as it is generated without vector instructions, where that is another
    text; `config` the Inductor options that it must be compiled with.
    """

    source: KernelSource
    calls: tuple[str, ...]
    args: tuple[KernelArgument, ...]
    program: Program | None
    extra: tuple[tuple[str, Value], ...] = ()
    scalar: KernelSource | None = None
    config: tuple[tuple[str, Any], ...] = field(default=())
