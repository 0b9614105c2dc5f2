"""One program under judgement inside a worker: eager, exported and compiled side by side.

It calls both sides, call after call and in all manners; what their answers mean is for the `jury` to say.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, Protocol

import torch
from torch.utils import _pytree as pytree

from minimizer.oracle import stages
from minimizer.oracle.aliasing import sharing
from minimizer.oracle.exported import Flat
from minimizer.oracle.jury import Jury
from minimizer.oracle.outcome import (
    Outcome,
    clone_inputs,
    flat_outputs,
    in_manner,
    same_bits,
    state_of,
    tensors_of,
)
from minimizer.oracle.seeds import reseed
from minimizer.oracle.threads import settle
from minimizer.oracle.torch_compile import compile_lazily
from minimizer.oracle.verdict import EAGER_AGAIN, Verdict
from minimizer.sandbox.worker import note, printed, printed_since

AGAIN = 10
"""Calls in the manners that call more often than asked."""

Call = Callable[[Flat], Flat]


class Subject(Protocol):
    """What can be judged: a model file or a program."""

    def module(self) -> torch.nn.Module:
        """A fresh module with state of its own."""

    def nest(self, flat: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Flat inputs as arguments."""

    def export(self) -> torch.export.ExportedProgram:
        """Export a fresh module on the example inputs."""


def _is_dynamic(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and any(isinstance(size, torch.SymInt) for size in value.shape)


class Session:
    """A subject, its compiled form, and verdicts on inputs."""

    def __init__(self, subject: Subject, config: dict[str, Any], path: str = "aoti") -> None:
        self.subject = subject
        self.config = config
        self.path = path
        self._ep: torch.export.ExportedProgram | None = None
        self._call: Call | None = None
        self._load: Callable[[], Call] | None = None
        self._model: torch.nn.Module | None = None
        self.jury = self._empanelled()
        self._ran = False
        self.stateful = False

    @property
    def ep(self) -> torch.export.ExportedProgram:
        """The exported program as no compiler has touched it, made when first needed."""
        if self._ep is None:
            self._ep = self.subject.export()
        return self._ep

    def spend_ep(self) -> torch.export.ExportedProgram:
        """The exported program to be compiled; it is exported anew for whoever looks at it afterwards.

        What the compiler assumes of sizes it writes into the program's own shape environment. A size that it
        fixes wrongly is then fixed in the exported program too, which seems to have promised it.
        """
        ep, self._ep = self.ep, None
        self.jury = self._empanelled()
        return ep

    def compile(self, level: str, package: str) -> stages.Compiled:
        """Compile up to a level of `stages.LEVELS`; with ``jit`` and ``full`` the session can then judge.

        On the path ``inductor`` nothing is compiled before the first call. Raises stages.StageError.
        """
        if self.path == "inductor":
            self.load(package)
            return stages.Compiled(self._call)
        if level == "jit":
            compiled = stages.compile_jit(self.spend_ep(), self.config)
            self._call = compiled.call
            self._load = None
            return compiled
        compiled = stages.compile_package(self.spend_ep(), self.config, package, level)
        if level == "full":
            self.load(package)
        return compiled

    def use(self, call: Call) -> None:
        """Judge another execution of the same program than `compile` gave: flat inputs to flat outputs."""
        self._call, self._load = call, None

    def load(self, package: str) -> None:
        """Load a compiled package. Raises stages.StageError."""

        def fresh() -> Call:
            if self.path == "inductor":
                given = self.ep.graph.find_nodes(op="placeholder")
                dynamic = any(_is_dynamic(node.meta.get("val")) for node in given)
                config, module = stages.options(self.config), self.subject.module()
                return compile_lazily(module, self.subject.nest, config, dynamic=dynamic)
            loaded = stages.load_package(package)

            def call(flat: Sequence[Any]) -> Sequence[Any]:
                args, kwargs = self.subject.nest(flat)
                return flat_outputs(loaded(*args, **kwargs))

            return call

        self._load = fresh
        self._call = fresh()

    def answer_with(self, fresh: Callable[[], Call]) -> None:
        """Judge calls that somebody else compiles; `fresh` gives one with the module's initial state."""
        self._load = fresh
        self._call = fresh()

    def notice_state(self, flat: Sequence[Any]) -> bool:
        """Learn whether a call changes the module's own state; such a subject starts afresh each time."""
        model = self.subject.module()
        before = {name: tensor.clone() for name, tensor in state_of(model).items()}
        self._eager(model, flat)
        after = state_of(model)
        self.stateful = any(not same_bits(before[name], after[name]) for name in before if name in after)
        return self.stateful

    def _eager(self, model: torch.nn.Module, flat: Flat, before: Outcome | None = None) -> Outcome:
        args, kwargs = self.subject.nest(flat)
        reseed()
        if self._ran:
            note(EAGER_AGAIN)
        try:
            with torch.no_grad():
                out = model(*args, **kwargs)
        except Exception as problem:  # noqa: BLE001 (an eager error is an outcome)
            return Outcome([], problem=problem)
        finally:
            if self._ran:
                note("compare")
        return self._outcome(flat_outputs(out), flat, before)

    @staticmethod
    def _outcome(values: list[Any], flat: Flat, before: Outcome | None) -> Outcome:
        given = tensors_of(flat)
        kept = [] if before is None else before.values[: before.outputs]
        return Outcome([*values, *given], len(values), sharing(values, given, kept))

    def eager_problem(self, *calls: Sequence[Any]) -> str:
        """What eager says against these inputs, given call after call; empty when it runs."""
        model = self.subject.module()
        for flat in calls:
            problem = self._eager(model, clone_inputs(flat)).problem
            if problem is not None:
                return f"{type(problem).__name__}: {problem}"
        return ""

    def _compiled(self, call: Call, flat: Flat, before: Outcome | None = None) -> Outcome:
        self._ran = True
        note("run")
        reseed()
        mark = printed()
        try:
            with torch.no_grad():
                values = list(call(flat))
        except Exception as problem:  # noqa: BLE001 (an error of the compiled program is an outcome)
            settle()
            return Outcome([], problem=problem, printed=printed_since(mark))
        finally:
            note("compare")
        return self._outcome(values, flat, before)

    def _empanelled(self) -> Jury:
        """A jury that has seen nothing of the exported program yet."""
        return Jury(lambda: self.ep, self._eager)

    def guards_reject(self, flat: Sequence[Any]) -> str:
        """Why the exported program's own guards refuse these inputs; empty when they accept."""
        return self.jury.exported.guards_reject(flat)

    def judge(self, *calls: Flat, plainly: bool = False, manner: str = "") -> Verdict:
        """Judge flat inputs, given to one loaded program call after call; the first bad answer counts.

        Inputs that eager itself refuses are given to the compiled program too: it must raise. A dead process
        is the caller's to judge. `plainly` leaves out the guards, and the envelope for errors of more than
        `PLAIN` times the tolerance: for inputs like those that have been through both. With a `manner`
        (`case.MANNERS`) what passes is called once more in that way.
        """
        if self._call is None:
            raise RuntimeError("nothing is compiled")
        verdict = self._in_turn(self._fresh_call(), calls, plainly)
        if not manner or verdict.status != "pass":
            return verdict
        if manner == "again":
            return self._again(calls, plainly)
        if manner == "reload":
            if self._load is None:
                return verdict
            return in_manner(self._in_turn(self._load(), calls, plainly), manner)
        return in_manner(self._threaded(calls, plainly, 1 if manner == "thread" else 2), manner)

    def _fresh_call(self) -> Call:
        """The compiled program; loaded afresh where it has state."""
        assert self._call is not None
        return self._load() if self.stateful and self._load is not None else self._call

    def _fresh_model(self) -> torch.nn.Module:
        """The module; a fresh one where it has state."""
        if self.stateful or self._model is None:
            self._model = self.subject.module()
        return self._model

    def _in_turn(self, call: Call, calls: Sequence[Flat], plainly: bool) -> Verdict:
        model, ratio = self._fresh_model(), 0.0
        eager, compiled = Outcome([]), Outcome([])
        for turn in range(1, len(calls) + 1):
            eager = self._eager(model, clone_inputs(calls[turn - 1]), eager)
            if eager.problem is not None:
                return replace(self._refused(call, calls[:turn], eager.problem), turn=turn)
            compiled = self._compiled(call, clone_inputs(calls[turn - 1]), compiled)
            verdict = self.jury.compared(calls[:turn], eager, compiled, plainly)
            ratio = max(ratio, verdict.error_ratio)
            if verdict.status != "pass":
                return replace(verdict, turn=turn)
        return Verdict("pass", error_ratio=ratio)

    def _again(self, calls: Sequence[Flat], plainly: bool) -> Verdict:
        """Call a program more often with the last inputs. Wrong now and then: nondeterministic."""
        call, model = self._fresh_call(), self._fresh_model()
        given = [*calls, *[calls[-1]] * AGAIN]
        verdicts = []
        for turn in range(1, len(given) + 1):
            eager = self._eager(model, clone_inputs(given[turn - 1]))
            compiled = self._compiled(call, clone_inputs(given[turn - 1]))
            verdicts.append(self.jury.compared(given[:turn], eager, compiled, plainly))
        bad = [turn for turn, verdict in enumerate(verdicts, 1) if verdict.failed]
        if not bad:
            return Verdict("pass")
        verdict = verdicts[bad[0] - 1]
        if self.stateful or len(bad) > len(given) - bad[0]:
            return replace(verdict, turn=bad[0])  # right up to some call and wrong from there on
        assert verdict.failure is not None
        message = f"{len(bad)} of {len(given)} calls with the same inputs: {verdict.failure.message}"
        return replace(verdict, failure=replace(verdict.failure, kind="nondeterministic", message=message))

    def _threaded(self, calls: Sequence[Flat], plainly: bool, threads: int) -> Verdict:
        """Call from other threads, with the inputs of all calls in turn; for programs without state."""
        model, call = self._fresh_model(), self._fresh_call()
        given = [calls[k % len(calls)] for k in range(AGAIN)]
        with ThreadPoolExecutor(threads) as pool:
            answers = list(pool.map(lambda flat: self._compiled(call, clone_inputs(flat)), given))
        for flat, compiled in zip(given, answers):
            verdict = self.jury.compared([flat], self._eager(model, clone_inputs(flat)), compiled, plainly)
            if verdict.status != "pass":
                return verdict
        return Verdict("pass")

    def _refused(self, call: Call, calls: Sequence[Flat], problem: Exception) -> Verdict:
        """The verdict on the last of some calls, which eager refuses: the compiled program must too."""
        return self.jury.refused(calls, problem, lambda: self._compiled(call, clone_inputs(calls[-1])))

    def bare_loop(self, inputs: Sequence[Sequence[Any]]) -> float:
        """Seconds for calling both sides on each of the flat inputs and comparing, with nothing else done."""
        assert self._call is not None
        model = self.subject.module()
        started = time.perf_counter()
        with torch.no_grad():
            for flat in inputs:
                args, kwargs = self.subject.nest(flat)
                expected = pytree.tree_leaves(model(*args, **kwargs))
                actual = list(self._call(flat))
                torch.testing.assert_close(actual, expected, equal_nan=True, rtol=1e-2, atol=1e-2)
        return time.perf_counter() - started
