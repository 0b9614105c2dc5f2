"""Every way in which a compiled program fails for good, provoked for real: one row each.

A custom operator behaves in eager and does harm when compiled code calls it, so each row is a death, a hang
or an answer that the judge sees as it sees a compiler's: first just in time, then from one loaded package,
where it matters which call or which load it is. What a generated program does by itself (exceptions while
lowering, C++ errors, wrong values, lost errors and assertions, another dtype) is in ``test_judging.py``,
accesses outside of a buffer in ``test_sanitize.py``.
"""

from dataclasses import replace

import pytest

from minimizer.case import Case, Literal, Settings, Value
from minimizer.oracle import target_bench as judging
from minimizer.oracle.requests import TargetRequest
from minimizer.oracle.target_bench import TargetBench
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


# From one package: the value of an input says what the operator does.

MOODY = """
import ctypes, sys, time, torch
from collections import Counter
from torch import library
from torch.export.pt2_archive._package import AOTICompiledModel

libc = ctypes.CDLL(None)
libc.malloc.argtypes, libc.malloc.restype = [ctypes.c_size_t], ctypes.c_void_p
libc.free.argtypes = [ctypes.c_void_p]
calls, loads, ruined = Counter(), [], []


def frames():
    frame = sys._getframe()
    while frame is not None:
        yield frame
        frame = frame.f_back


def loaded():
    for frame in frames():
        if isinstance(frame.f_locals.get("self"), AOTICompiledModel):
            return frame.f_locals["self"]


def ruin():
    chunk = libc.malloc(64 << 20)  # a mapping of its own, which only its own free looks at
    ctypes.memset(chunk - 16, 0x41, 16)
    ruined.append(chunk)


@library.custom_op("moody::act", mutates_args=())
def act(x: torch.Tensor, mood: torch.Tensor) -> torch.Tensor:
    package = loaded()
    if package is None:
        for chunk in ruined:
            libc.free(chunk)
        return x + 1
    loads[:] = loads or [package]
    mood = int(mood)
    calls[mood] += 1
    if mood == {ruin}:
        ruin()
    if mood == {sleep}:
        time.sleep(600)
    if mood == {turn}:
        return (x + 1).t().contiguous().t()
    wrong = {{{later}: calls[mood] > 1, {reload}: package is not loads[0], {sometimes}: calls[mood] % 3 == 0}}
    return x + 1 + wrong.get(mood, False)


@library.custom_op("moody::add_to", mutates_args=("x",))
def add_to(x: torch.Tensor, mood: torch.Tensor) -> None:
    if loaded() is None or int(mood) != {keep}:
        x.add_(1)


@act.register_fake
def _(x, mood):
    if {stuck} and any(frame.f_code.co_filename.endswith("_inductor/lowering.py") for frame in frames()):
        time.sleep(600)
    return x + 1


class Model(torch.nn.Module):
    def forward(self, x, mood):
        y = torch.ops.moody.act(x.cos(), mood)
        torch.ops.moody.add_to(x, mood)
        return y


model, example_inputs = Model(), (torch.ones(3, 4), torch.tensor(0))
"""
MOODS = {name: k for k, name in enumerate("ruin sleep turn later reload sometimes keep".split(), 1)}


def moody(sandbox, folder, *, stuck):
    (folder / "model.py").write_text(MOODY.format(**MOODS, stuck=stuck))
    request = TargetRequest(str(folder / "model.py"), str(folder / "store"))
    made = TargetBench(sandbox, request, folder / "model.pt2")
    made.open()
    return made


@pytest.fixture(scope="module")
def package(sandbox, tmp_path_factory):
    made = moody(sandbox, tmp_path_factory.mktemp("moody"), stuck=False)
    assert made.compile(300.0) is None
    yield made
    made.close()


def inputs(mood):
    return (Value("float32", (3, 4), Fill("ones")), Value("int64", (), Literal((MOODS.get(mood, 0),))))


PACKAGED = {
    "later": (2, "", "wrong_value", "", "values"),
    "reload": (1, "reload", "wrong_value", "", "values, after a second load"),
    "sometimes": (1, "again", "nondeterministic", "", "values"),
    "turn": (1, "", "wrong_metadata", "", "stride"),
    "keep": (1, "", "lost_mutation", "", "mutation of inputs: values"),
    "ruin": (2, "", "crash", "SIGABRT", "memory"),
    "sleep": (1, "", "hang", "", ""),
}
"""What a package does: calls, manner; then kind, exception or signal, and text of the signature."""


@pytest.mark.parametrize(("mood", "expected"), PACKAGED.items(), ids=PACKAGED.keys())
def test_kind_of_a_package(package, mood, expected):
    calls, manner, kind, exception, text = expected
    package.run_timeout = 3.0
    failure = package.judge(*[inputs(mood)] * calls, manner=manner).failure
    assert (failure.kind, failure.stage, failure.exception) == (kind, "run", exception)
    assert failure.signature.text == text


@pytest.mark.parametrize("manner", ["", "again", "reload"])
def test_in_no_mood_it_passes(package, manner):
    assert package.judge(inputs(""), inputs(""), manner=manner).status == "pass"


def test_heap_that_is_ruined_by_one_call_is_noticed_at_the_next(package):
    assert package.judge(inputs("ruin")).status == "pass"
    assert package.judge(inputs("")).failure.signature.text == "memory"


def test_a_compilation_that_does_not_end(sandbox, tmp_path):
    made = moody(sandbox, tmp_path, stuck=True)
    failure = made.compile(5.0)
    made.close()
    assert (failure.kind, failure.stage) == ("hang", "lower")
