"""Every way in which a compiled program fails for good, provoked for real: one row each.

A custom operator behaves in eager and does harm when the generated code calls it, so each row is a death, a
hang or an answer that the judge sees as it sees a compiler's. What a generated program does by itself
(exceptions while lowering, C++ errors, wrong values, lost errors) is in ``test_judging.py``.
"""

from dataclasses import replace

import pytest

from minimizer.case import Case, Settings, Value
from minimizer.oracle import bench as judging
from minimizer.program import Input, Node, Program, Ref, Symbol, TensorMeta
from strategies.values import Fill

pytestmark = pytest.mark.compiles

HOSTILE = """
import ctypes, os, signal, sys, time, torch


def compiled():
    frame = sys._getframe()
    while frame is not None:
        if "/inductor/" in frame.f_code.co_filename:  # where generated code is written
            return True
        frame = frame.f_back
    return False


HARM = {
    "SIGFPE": lambda x: os.kill(os.getpid(), signal.SIGFPE),
    "SIGSEGV": lambda x: ctypes.string_at(8),
    "exit": lambda x: os._exit(3),
    "hang": lambda x: time.sleep(600),
    "raise": lambda x: (_ for _ in ()).throw(ValueError("no such luck")),
    "memory": lambda x: torch.empty(1 << 60, dtype=torch.uint8),
    "nan": lambda x: x * float("nan"),
    "inf": lambda x: x / 0,
    "value": lambda x: x + 2,
}


def register(name, harm):
    def act(x: torch.Tensor) -> torch.Tensor:
        changed = harm(x) if compiled() else None
        return changed if isinstance(changed, torch.Tensor) else x + 1

    torch.library.custom_op(f"hostile::does_{name}", act, mutates_args=()).register_fake(lambda x: x + 1)


for name, harm in HARM.items():
    register(name, harm)
"""


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    path = tmp_path_factory.mktemp("hostile") / "hostile.py"
    path.write_text(HOSTILE)
    return str(path)


def harmed(name, file):
    meta = TensorMeta("float32", ("n",), (1,))
    nodes = (
        Node("a", "aten.cos.default", (Ref("x"),), meta=meta),
        Node("y", f"hostile.does_{name}.default", (Ref("a"),), meta=meta),
    )
    program = Program((Input("x", meta),), nodes, Ref("y"), symbols=(Symbol("n", 2, 64, 8),))
    return Case(program, (Value("float32", (8,), Fill("ones")),), Settings(modules=(file,)))


KINDS = {
    "SIGFPE": ("crash", "SIGFPE", "SIGFPE"),
    "SIGSEGV": ("crash", "SIGSEGV", "memory"),
    "exit": ("crash", "exit 3", "exit 3"),
    "hang": ("hang", "", ""),
    "raise": ("runtime_error", "ValueError", "no such luck"),
    "memory": ("out_of_memory", "RuntimeError", None),
    "nan": ("wrong_value", "", "values: not finite"),
    "inf": ("wrong_value", "", "values: not finite"),
    "value": ("wrong_value", "", "values"),
}
"""What the compiled program does: the kind, the exception or signal, and the text of the signature."""


@pytest.mark.parametrize(("harm", "expected"), KINDS.items(), ids=KINDS.keys())
def test_kind(bench, hostile, harm, expected, monkeypatch):
    monkeypatch.setattr(judging, "RUN_TIMEOUT", 3.0)
    failure = bench.judge(harmed(harm, hostile), "jit").failure
    kind, exception, text = expected
    assert (failure.kind, failure.stage) == (kind, "run")
    assert exception is None or failure.exception == exception
    assert text is None or failure.signature.text == text


def test_what_eager_has_no_memory_for_proves_nothing(bench):
    meta = TensorMeta("float32", (), ())
    node = Node("y", "aten.full.default", ([1 << 55], 1.0), meta=TensorMeta("float32", (1 << 55,), (1,)))
    program = Program((Input("x", meta),), (node,), Ref("y"))
    verdict = bench.judge(Case(program, (Value("float32", (), Fill("ones")),)), "lower")
    assert verdict.status == "invalid"
    assert "memory" in verdict.reason


def test_a_harmless_twin_passes(bench, hostile):
    """The same operator as in eager: harm is done by the name, not by being a custom operator."""
    case = harmed("value", hostile)
    nodes = tuple(
        replace(n, target="aten.add.Tensor", args=(Ref("a"), 1)) if n.name == "y" else n
        for n in case.program.nodes
    )
    twin = replace(case, program=replace(case.program, nodes=nodes))
    assert bench.judge(twin, "jit").status == "pass"
