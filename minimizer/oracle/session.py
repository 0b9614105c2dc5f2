"""One program under judgement inside a worker: eager, exported and compiled side by side.

Three layers. Eager says what is right; a program that eager refuses proves nothing unless the compiled one
takes the process down. The exported program with its guards says what was promised. Where both accept and
the compiled program answers otherwise, and no legal execution would (`envelope`), the compiler is wrong.
"""

from __future__ import annotations

import copy
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import torch
from torch.utils import _pytree as pytree

from minimizer.build import clone_exact
from minimizer.oracle import stages
from minimizer.oracle.compare import TOLERANCES, Mismatch, compare
from minimizer.oracle.envelope import Envelope, Free
from minimizer.oracle.freedoms import HUGE
from minimizer.oracle.torch_compile import compile_lazily
from minimizer.oracle.verdict import SEVERITY, Failure, Verdict
from minimizer.sandbox.worker import note, printed, printed_since

PLAIN = 1000.0
"""Errors of so many times the tolerance are not rounding."""

RNG_SEED = 0
"""Every layer draws from the same stream."""


class Subject(Protocol):
    """What can be judged: a model file or a program."""

    def module(self) -> torch.nn.Module:
        """A fresh module with state of its own."""

    def nest(self, flat: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Flat inputs as arguments."""

    def export(self) -> torch.export.ExportedProgram:
        """Export a fresh module on the example inputs."""


@dataclass
class Outcome:
    """What one layer did: flat outputs followed by the tensor inputs as it left them, or an exception."""

    values: list[Any]
    outputs: int = 0
    problem: Exception | None = None
    printed: str = ""


def clone_inputs(flat: Sequence[Any]) -> list[Any]:
    """Copies with the same strides; one tensor given twice stays one tensor."""
    copies: dict[int, torch.Tensor] = {}
    return [
        copies.setdefault(id(v), clone_exact(v)) if isinstance(v, torch.Tensor) else copy.deepcopy(v)
        for v in flat
    ]


def _reseed() -> None:
    """Start every random stream anew.

    ``torch.manual_seed`` notes a stack trace for each device type that is not in use yet, which takes longer
    than a small program.
    """
    torch.default_generator.manual_seed(RNG_SEED)
    if torch.cuda.is_initialized():
        torch.cuda.manual_seed_all(RNG_SEED)


def _is_dynamic(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and any(isinstance(size, torch.SymInt) for size in value.shape)


def _tensors(flat: Sequence[Any]) -> list[torch.Tensor]:
    return [value for value in flat if isinstance(value, torch.Tensor)]


class Session:
    """A subject, its compiled form, and verdicts on inputs."""

    def __init__(self, subject: Subject, config: dict[str, Any], path: str = "aoti") -> None:
        self.subject = subject
        self.config = config
        self.path = path
        self._ep: torch.export.ExportedProgram | None = None
        self._call: Callable[[Sequence[Any]], Sequence[Any]] | None = None
        self._load: Callable[[], Callable[[Sequence[Any]], Sequence[Any]]] | None = None
        self._model: torch.nn.Module | None = None
        self._graph: torch.nn.Module | None = None
        self._guards: Callable[..., Any] | None = None
        self.stateful = False

    @property
    def ep(self) -> torch.export.ExportedProgram:
        """The exported program, made when first needed."""
        if self._ep is None:
            self._ep = self.subject.export()
        return self._ep

    def compile(self, level: str, package: str) -> stages.Compiled:
        """Compile up to a level of `stages.LEVELS`; with ``jit`` and ``full`` the session can then judge.

        On the path ``inductor`` nothing is compiled before the first call. Raises stages.StageError.
        """
        if self.path == "inductor":
            self.load(package)
            return stages.Compiled(self._call)
        if level == "jit":
            compiled = stages.compile_jit(self.ep, self.config)
            self._call = compiled.call
            self._load = None
            return compiled
        compiled = stages.compile_package(self.ep, self.config, package, level)
        if level == "full":
            self.load(package)
        return compiled

    def use(self, call: Callable[[Sequence[Any]], Sequence[Any]]) -> None:
        """Judge another execution of the same program than `compile` gave: flat inputs to flat outputs."""
        self._call, self._load = call, None

    def load(self, package: str) -> None:
        """Load a compiled package. Raises stages.StageError."""

        def fresh() -> Callable[[Sequence[Any]], Sequence[Any]]:
            if self.path == "inductor":
                given = self.ep.graph.find_nodes(op="placeholder")
                dynamic = any(_is_dynamic(node.meta.get("val")) for node in given)
                config, module = stages.options(self.config), self.subject.module()
                return compile_lazily(module, self.subject.nest, config, dynamic=dynamic)
            loaded = stages.load_package(package)

            def call(flat: Sequence[Any]) -> Sequence[Any]:
                args, kwargs = self.subject.nest(flat)
                return pytree.tree_leaves(loaded(*args, **kwargs), is_leaf=lambda leaf: leaf is None)

            return call

        self._load = fresh
        self._call = fresh()

    def adopt(self, call: Callable[[Sequence[Any]], Sequence[Any]]) -> None:
        """Judge with a compiled call from elsewhere: this program as a part of a larger one."""
        self._call = call
        self._load = None

    def notice_state(self, flat: Sequence[Any]) -> bool:
        """Learn whether a call changes the module's own state; such a subject starts afresh each time."""
        model = self.subject.module()
        before = {name: tensor.clone() for name, tensor in _state(model).items()}
        self._eager(model, flat)
        after = _state(model)
        self.stateful = any(not _same_bits(before[name], after[name]) for name in before if name in after)
        return self.stateful

    def _eager(self, model: torch.nn.Module, flat: Sequence[Any]) -> Outcome:
        args, kwargs = self.subject.nest(flat)
        _reseed()
        try:
            with torch.no_grad():
                out = model(*args, **kwargs)
        except Exception as problem:  # noqa: BLE001 (an eager error is an outcome)
            return Outcome([], 0, problem)
        values = pytree.tree_leaves(out, is_leaf=lambda leaf: leaf is None)
        return Outcome([*values, *_tensors(flat)], len(values))

    def eager_problem(self, flat: Sequence[Any]) -> str:
        """What eager says against these inputs; empty when it runs."""
        problem = self._eager(self.subject.module(), clone_inputs(flat)).problem
        return f"{type(problem).__name__}: {problem}" if problem else ""

    def _compiled(self, call: Callable[[Sequence[Any]], Sequence[Any]], flat: Sequence[Any]) -> Outcome:
        note("run")
        _reseed()
        mark = printed()
        try:
            with torch.no_grad():
                values = list(call(flat))
        except Exception as problem:  # noqa: BLE001 (an error of the compiled program is an outcome)
            return Outcome([], 0, problem, printed_since(mark))
        finally:
            note("compare")
        return Outcome([*values, *_tensors(flat)], len(values))

    def guards_reject(self, flat: Sequence[Any]) -> str:
        """Why the exported program's own guards refuse these inputs; empty when they accept."""
        if self._guards is None:
            self._guards = getattr(self.ep.module(), "_guards_fn", None) or (lambda *flat: None)
        try:
            self._guards(*clone_inputs(flat))
        except AssertionError as problem:
            return str(problem)
        except Exception as problem:  # noqa: BLE001 (a guard that cannot be evaluated refuses as well)
            return f"{type(problem).__name__}: {problem}"
        return ""

    def judge(self, flat: Sequence[Any], calls: int = 1, *, plainly: bool = False) -> Verdict:
        """Judge one set of flat inputs, called `calls` times.

        Inputs that eager itself refuses are given to the compiled program too: it must raise. A dead process
        is the caller's to judge. `plainly` leaves out the guards, and the envelope for errors of more than
        `PLAIN` times the tolerance: for inputs like those that have been through both.
        """
        if self._call is None:
            raise RuntimeError("nothing is compiled")
        if self.stateful or self._model is None:
            self._model = self.subject.module()
        model, call = self._model, self._call
        if self.stateful and self._load is not None:
            call = self._load()
        ratio = 0.0
        for turn in range(1, calls + 1):
            given = clone_inputs(flat)
            eager = self._eager(model, given)
            if eager.problem is not None:
                return self._after_eager_error(call, flat, eager.problem)
            taken = clone_inputs(flat)
            compiled = self._compiled(call, taken)
            if compiled.problem is not None:
                rejected = "" if plainly else self.guards_reject(flat)
                if rejected:
                    return Verdict("invalid", reason=f"out of contract: {rejected}")
                return Verdict("fail", _runtime_failure(compiled))
            mismatches, worst = compare(compiled.values, eager.values)
            ratio = max(ratio, worst)
            if mismatches:
                verdict = self._judge_mismatches(mismatches, flat, eager, compiled, turn, plainly)
                if verdict is not None:
                    return verdict
        return Verdict("pass", error_ratio=ratio)

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

    def _after_eager_error(
        self,
        call: Callable[[Sequence[Any]], Sequence[Any]],
        flat: Sequence[Any],
        problem: Exception,
    ) -> Verdict:
        reason = f"eager raises {type(problem).__name__}: {problem}"[:500]
        if self.guards_reject(flat):
            return Verdict("invalid", reason=f"out of contract; {reason}")
        compiled = self._compiled(call, clone_inputs(flat))
        if compiled.problem is not None:
            return Verdict("invalid", reason=reason)
        failure = Failure(
            kind="lost_error",
            stage="run",
            exception=type(problem).__name__,
            message=f"eager raises, the compiled program returns: {problem}"[:2000],
        )
        return Verdict("fail", failure)

    def _judge_mismatches(
        self,
        mismatches: Sequence[Mismatch],
        flat: Sequence[Any],
        eager: Outcome,
        compiled: Outcome,
        turn: int,
        plainly: bool,
    ) -> Verdict | None:
        rejected = "" if plainly else self.guards_reject(flat)
        if rejected:
            return Verdict("invalid", reason=f"out of contract: {rejected}")
        envelope = Envelope(lambda seed, noise, promote: self._free(flat, turn, seed, noise, promote))
        left: list[Mismatch] = []
        for mismatch in mismatches:
            k = mismatch.index
            if mismatch.flavour == "structure" or (plainly and mismatch.ratio >= PLAIN):
                left.append(mismatch)
                continue
            judged = envelope.judge(mismatch, compiled.values[k], eager.values[k])
            if judged is not None:
                left.append(judged)
        if not left:
            return None
        failures = [self._failure(mismatch, eager.outputs, turn) for mismatch in left]
        failure = max(failures, key=lambda f: SEVERITY[f.kind])
        outputs = tuple(m.index for m in left if m.index < eager.outputs)
        ratio = max(m.ratio for m in left)
        return Verdict(
            "fail", replace(failure, outputs=outputs), error_ratio=ratio, special=_has_special_values(flat)
        )

    def _failure(self, mismatch: Mismatch, outputs: int, turn: int) -> Failure:
        where = (
            f"output {mismatch.index}" if mismatch.index < outputs else f"input {mismatch.index - outputs}"
        )
        kind = "wrong_value" if mismatch.flavour == "values" else "wrong_metadata"
        flavour = mismatch.flavour if mismatch.finite else f"{mismatch.flavour}: not finite"
        if mismatch.index >= outputs:
            kind = "lost_mutation" if kind == "wrong_value" else kind
            flavour = f"mutation of inputs: {flavour}"
        at = f" on call {turn}" if turn > 1 else ""
        message = f"{where}{at}: {mismatch.figures}"
        return Failure(kind=kind, stage="run", message=message, figures=mismatch.figures, flavour=flavour)

    def _free(self, flat: Sequence[Any], calls: int, seed: int, noise: float, promote: bool) -> list[Any]:
        if self._graph is None:  # an execution keeps its state to itself, so all of them can share the graph
            self._graph = self.ep.module(check_guards=False)
        assert isinstance(self._graph, torch.fx.GraphModule)
        execution = Free(self._graph, seed, noise, promote=promote)
        values: list[Any] = []
        with torch.no_grad():
            for _ in range(calls):
                _reseed()
                values = execution.call(clone_inputs(flat))
        return values


def _runtime_failure(compiled: Outcome) -> Failure:
    """The compiled program's exception; AOTI's own says only *API call failed*, the reason goes to stderr."""
    assert compiled.problem is not None
    if isinstance(compiled.problem, stages.StageError):  # torch.compile compiles when it is called
        return compiled.problem.failure
    failure = stages.failure_of(compiled.problem, "runtime_error", "run")
    said = re.search(r"^(?:Error|Exception): (.*)", compiled.printed, re.MULTILINE)
    if said and "API call failed" in failure.message:
        return replace(failure, message=said[1], detail=f"{compiled.printed[-5000:]}\n{failure.detail}")
    return failure


def _has_special_values(flat: Sequence[Any]) -> bool:
    """Whether some input holds NaN, infinity, or numbers so large that their squares overflow."""
    floats = (t for t in _tensors(flat) if t.is_floating_point() or t.is_complex())
    limit = HUGE["float32"]
    return any(not bool((t.abs() <= limit).all()) for t in floats if t.dtype in TOLERANCES)


def _state(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {
        **{name: p.detach() for name, p in model.named_parameters()},
        **dict(model.named_buffers()),
    }


def _same_bits(a: torch.Tensor, b: torch.Tensor) -> bool:
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    same = a == b
    return bool((same | ((a != a) & (b != b))).all())
