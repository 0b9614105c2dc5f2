"""What a repro script needs in order to show a failure soundly, read off the case and the failure.

Each property answers one question: is anything written to, so that both sides need copies of their own; must
a process die; is there randomness to pin. A script that asks for less than it could stays short.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from minimizer.case import Case
from minimizer.liveness import alias_bases
from minimizer.oracle.verdict import Failure
from minimizer.program import Program, TensorMeta, leaves, references
from minimizer.sandbox.asan import is_asan, without_asan

ERRORS = frozenset(
    "export_error compile_error cxx_error load_error runtime_error spurious_error out_of_memory".split()
)
DEATHS = frozenset({"crash", "memory_error"})
ALLOCATOR = ("MALLOC_", "GLIBC_TUNABLES", "LD_PRELOAD")
"""Variables that a process reads before Python runs: only a child can be given them."""
LOCALS = frozenset(
    """
    Model Path actual args backend calls check child compiled config copy dims eager error example expected
    function given inputs job kwargs math memory mine model one operator os package path pool program raised
    saved shared side sides signal subprocess sys test_fn theirs torch tree_leaves tree_map
    """.split()
)
"""Names that a script has a use for."""
_RANDOM = re.compile(
    r"\.(rand|randn|randint|randperm|bernoulli|multinomial|poisson|normal|uniform|exponential|geometric|cauchy"
    r"|random|rrelu|\w*dropout)(_like)?_?(\.|$)"
)


def loses_error(failure: Failure) -> bool:
    """Whether eager raises and the compiled program does not.

    A check may be missing, too, that only the exported program makes: then there are values to compare.
    """
    return failure.kind in ("lost_error", "missing_check") and not failure.flavour


@dataclass(frozen=True)
class Needs:
    """The needs of one case."""

    case: Case
    failure: Failure

    @cached_property
    def program(self) -> Program:
        return self.case.program

    @cached_property
    def written(self) -> frozenset[str]:
        """Inputs and state tensors that the program writes to."""
        bases = alias_bases(self.program)
        names = {
            bases.get(name, name)
            for node in self.program.nodes
            for k in node.mutates
            if k < len(node.args)
            for name in references(node.args[k])
        }
        given = {i.name for i in self.program.inputs} | {s.name for s in self.program.state}
        return frozenset(names & given)

    @cached_property
    def compares_inputs(self) -> bool:
        mutation = self.failure.kind == "lost_mutation" or "mutation" in self.failure.flavour
        return mutation or any(i.name in self.written for i in self.program.inputs)

    @cached_property
    def calls(self) -> int:
        return len(self.case.sequence)

    @cached_property
    def threads(self) -> int:
        """Threads that call the compiled program; 0 where the main one does."""
        return {"thread": 1, "threads": 2}.get(self.case.settings.manner, 0)

    @cached_property
    def varied(self) -> bool:
        """Whether the calls are given different inputs."""
        return any(call != self.case.values for call in self.case.earlier)

    @cached_property
    def copies_inputs(self) -> bool:
        bases = alias_bases(self.program)
        given = {i.name for i in self.program.inputs}
        shared = any(bases.get(name, name) in given for name in self.program.outputs) or self.threads > 0
        return self.compares_inputs or shared or self.calls > 1

    @cached_property
    def own_model(self) -> bool:
        """Whether the model's state is built once, into a variable."""
        return bool(self.program.state)

    @cached_property
    def copies_model(self) -> bool:
        return self.own_model and (self.calls > 1 or any(s.name in self.written for s in self.program.state))

    @cached_property
    def in_child(self) -> bool:
        early = any(name.startswith(ALLOCATOR) for name, _ in self.environment)
        return self.asan or early or self.failure.kind in DEATHS | {"hang"}

    @cached_property
    def random(self) -> bool:
        return any(_RANDOM.search(node.target) for node in self.program.nodes)

    @cached_property
    def config(self) -> dict[str, object]:
        return dict(self.case.settings.config) | ({"fallback_random": True} if self.random else {})

    @cached_property
    def asan(self) -> bool:
        """Whether the failure shows under AddressSanitizer only."""
        return is_asan(self.case.settings.environment)

    @cached_property
    def environment(self) -> tuple[tuple[str, str], ...]:
        """Variables to set, those of AddressSanitizer aside."""
        return without_asan(self.case.settings.environment)

    @property
    def model(self) -> str:
        return "model" if self.own_model else "Model()"

    @property
    def compile_only(self) -> bool:
        """Whether AOTInductor itself raises, so that no compiled program is ever called."""
        before = ("export", "lower", "cxx", "package")
        aoti = self.case.settings.path == "aoti"
        return aoti and self.failure.kind in ERRORS and self.failure.stage in before

    def call(self, function: str, source: str = "", *, copies: bool = True) -> str:
        """The expression that calls a function with the failing inputs, or with those of `source`.

        Unless `copies` is false, it gets copies where they are written to or used again.
        """
        if source:
            return f"{function}(*{source}[0], **{source}[1])" if self.has_kwargs else f"{function}(*{source})"
        copied = "copy.deepcopy({})" if copies and self.copies_inputs else "{}"
        if self.has_kwargs:
            return f"{function}(*{copied.format('args')}, **{copied.format('kwargs')})"
        if not self.takes_inputs:
            return f"{function}()"
        return f"{function}(*{copied.format('inputs')})"

    @property
    def takes_inputs(self) -> bool:
        """Whether there are inputs to name: those of a model without any are ``()``."""
        return bool(self.program.inputs) or not self.program.is_flat

    @property
    def inputs_name(self) -> str:
        return "inputs" if self.takes_inputs else "()"

    @property
    def has_kwargs(self) -> bool:
        return bool(self.program.kwargs)

    @property
    def single_output(self) -> TensorMeta | None:
        """What is known of the output where it is one tensor."""
        names = [leaf.name for leaf in leaves(self.program.output) if hasattr(leaf, "name")]
        if self.compares_inputs or isinstance(self.program.output, (tuple, list)) or len(names) != 1:
            return None
        meta = self.program.meta_of(names[0])
        return meta if isinstance(meta, TensorMeta) else None
