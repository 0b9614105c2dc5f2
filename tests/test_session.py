"""Judging with compiled programs that are Python functions, each wrong in its own way."""

import itertools
import threading

import pytest
import torch

from minimizer.oracle.aliasing import sharing
from minimizer.oracle.session import AGAIN, Session
from minimizer.oracle.stages import Compiled, StageError


class Subject:
    """A module whose example inputs are also what it is judged on."""

    def __init__(self, module, *args):
        self._module, self.args = module, args

    def module(self):
        return self._module()

    def nest(self, flat):
        return tuple(flat), {}

    def export(self):
        return torch.export.export(self._module(), self.args)


def function(f):
    """A module class that calls `f`."""
    return type("Model", (torch.nn.Module,), {"forward": lambda self, *args: f(*args)})


X = torch.tensor([0.5, -1.0, 2.0, 3.0])


def session(eager, compiled, *, again=None, inputs=(X,)):
    """`again` makes the compiled program for a second load."""
    made = Session(Subject(function(eager), *inputs), {})
    made._call = lambda flat: list(compiled(*flat))
    if again is not None:
        made._load = lambda: lambda flat: list(again(*flat))
    return made


def double(x):
    return (x * 2,)


def refusing(problem):
    def compiled(*args):
        raise RuntimeError(problem)

    return compiled


# Aliasing


def test_memory_is_shared_where_addresses_overlap():
    base = torch.zeros(10)
    pairs = sharing([base[:5], base[5:], base[4:6], base.clone()], [base[9:]], [base[:1]])
    assert {str(pair) for pair in pairs} == {
        "output 2 shares memory with output 0",
        "output 2 shares memory with output 1",
        "output 1 shares memory with input 0",
        "output 0 shares memory with output of the call before 0",
    }


def test_empty_and_odd_tensors_share_nothing():
    empty, sparse, meta = torch.zeros(0), torch.eye(2).to_sparse(), torch.zeros(2, device="meta")
    assert sharing([empty, sparse, meta, 3, None], [empty, sparse, meta]) == frozenset()


@pytest.mark.parametrize(
    ("compiled", "flavour"),
    [
        (lambda x: [x, torch.relu(x)], "output shares memory with input"),
        (lambda x: [torch.relu(x)] * 2, "output shares memory with output"),
    ],
    ids=["input", "output"],
)
def test_shared_memory_that_eager_does_not_share(compiled, flavour):
    made = session(lambda x: (torch.relu(x), torch.relu(x)), compiled)
    failure = made.judge([X.abs()]).failure
    assert (failure.kind, failure.stage, failure.flavour) == ("wrong_aliasing", "run", flavour)
    assert failure.signature.text == flavour


def test_a_result_that_the_next_call_writes_over():
    kept = torch.zeros(4)
    made = session(double, lambda x: [kept.copy_(x * 2)])
    verdict = made.judge([X], [X])
    assert verdict.failure.kind == "wrong_aliasing"
    assert verdict.turn == 2


def test_memory_that_eager_shares_too_is_fine():
    made = session(lambda x: (x, x[1:], x * 2), lambda x: [x, x[1:], x * 2])
    assert made.judge([X], [X]).status == "pass"


# Kinds that need no compiler


def halve_in_place(x):
    return (x.mul_(0.5).sum(),)


@pytest.mark.parametrize(
    ("eager", "compiled", "kind", "flavour"),
    [
        (halve_in_place, lambda x: [(x * 0.5).sum()], "lost_mutation", "mutation of inputs: values"),
        (lambda x: (x * 2,), lambda x: [x.double() * 2], "wrong_metadata", "dtype"),
        (lambda x: (x * 2,), lambda x: [(x * 2)[None]], "wrong_metadata", "shape"),
        (lambda x: (x.int(),), lambda x: [x.int() + 1], "wrong_value", "values"),
        (lambda x: (x > 0,), lambda x: [x >= -1], "wrong_value", "values"),
        (lambda x: (x * 1j,), lambda x: [x * 2j], "wrong_value", "values"),
        (lambda x: (x.half(),), lambda x: [x.half() * 1.01], "wrong_value", "values"),
        (lambda x: (x.bfloat16(),), lambda x: [x.bfloat16() * 1.1], "wrong_value", "values"),
        (lambda x: (x / 0,), lambda x: [-x / 0], "wrong_value", "values: not finite"),
    ],
    ids=["mutation", "dtype", "shape", "int", "bool", "complex", "half", "bfloat16", "inf"],
)
def test_kinds_of_wrong_answers(eager, compiled, kind, flavour):
    failure = session(eager, compiled).judge([X.clone()]).failure
    assert (failure.kind, failure.stage, failure.flavour) == (kind, "run", flavour)


def test_what_eager_refuses_and_the_compiled_program_takes_has_lost_an_error():
    made = session(lambda x, i: (x[i],), lambda x, i: [x], inputs=(X, torch.tensor([3, 2, 1, 0])))
    failure = made.judge([X, torch.tensor([3, 2, 1, 9])]).failure
    assert (failure.kind, failure.exception) == ("lost_error", "IndexError")
    assert failure.message.startswith("eager raises, the compiled program returns: index 9")


# What export does


def test_a_check_that_is_left_out_while_exporting_is_no_lost_error():
    def careful(x):
        if not torch.compiler.is_exporting() and x.max() > 2.5:
            raise ValueError("too loud")
        return (x * 2,)

    verdict = session(careful, double).judge([X])
    assert verdict.status == "invalid"
    assert verdict.reason == "eager raises ValueError: too loud; the exported program does not"


def test_what_python_remembers_and_export_bakes_in_is_not_the_compiler_s():
    seen = []

    def growing(x):
        seen.append(x)
        return (torch.cat([x] * (len(seen) if not torch.compiler.is_exporting() else 1)),)

    verdict = session(growing, lambda x: [x.clone()]).judge([X], [X])
    assert verdict.status == "invalid"
    assert verdict.reason.startswith("by export, not the compiler: eager returns shape [8]")


def test_what_neither_eager_nor_the_exported_program_is_is_the_compiler_s():
    failure = session(double, lambda x: [(x * 2)[:2]]).judge([X]).failure
    assert (failure.kind, failure.flavour) == ("wrong_metadata", "shape")


def test_what_the_exported_program_raises_too_is_no_spurious_error():
    def loose(x, i):
        return (x[i % 4] if not torch.compiler.is_exporting() else x[i],)

    made = session(loose, refusing("index out of bounds"), inputs=(X, torch.tensor([3, 2])))
    verdict = made.judge([X, torch.tensor([3, 9])])
    assert (verdict.status, "index 9 is out of bounds" in verdict.reason) == ("invalid", True)


def rows(y, n):
    """Two dims of which one is data; export asserts what makes the view possible, and that it is not -1."""
    return (y.view(n.item(), 2),)


Y, TWO = torch.arange(4.0), torch.tensor(2)


def test_what_only_the_exported_program_refuses_is_not_promised():
    made = session(rows, refusing("Expected u2 >= 2 but received -1"), inputs=(Y, TWO))
    assert made.judge([Y, TWO]).failure.kind == "runtime_error"
    verdict = made.judge([Y, torch.tensor(-1)])
    assert verdict.status == "invalid"
    assert "exported program refuses these values: Runtime assertion failed" in verdict.reason


def test_an_assertion_that_the_compiled_program_does_not_make_is_missed_when_its_answer_is_wrong():
    made = session(rows, lambda y, n: [y.view(2, 2)], inputs=(Y, TWO))
    assert made.judge([Y, torch.tensor(-1)]).status == "pass"
    made = session(rows, lambda y, n: [y.view(2, 2) + 1], inputs=(Y, TWO))
    assert made.judge([Y, TWO]).failure.kind == "wrong_value"
    failure = made.judge([Y, torch.tensor(-1)]).failure
    assert (failure.kind, failure.stage, failure.flavour) == ("missing_check", "run", "values")


def test_an_assertion_of_the_program_that_eager_makes_too():
    made = session(rows, lambda y, n: [y.view(2, 2)], inputs=(Y, TWO))
    failure = made.judge([Y, torch.tensor(3)]).failure
    assert (failure.kind, failure.flavour) == ("missing_check", "")
    assert "Runtime assertion failed for expression" in failure.signature.text


def test_state_that_an_assertion_reads_is_that_of_the_failing_call():
    class Limited(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("left", torch.tensor(2))

        def forward(self, x):
            self.left -= 1
            torch._check(self.left.item() > 0)
            return (x * 2,)

    made = Session(Subject(Limited, X), {})
    made.stateful = True
    made._call = lambda flat: [flat[0] * 2]
    assert made.judge([X]).status == "pass"
    verdict = made.judge([X], [X])
    assert (verdict.failure.kind, verdict.turn) == ("missing_check", 2)


def test_a_size_that_the_compiler_fixes_was_not_promised(monkeypatch):
    """A lowering that takes a size for a number: what it assumes, it writes into the program itself."""

    class OfAnySize(Subject):
        def export(self):
            dims = (({0: torch.export.Dim("n", min=2, max=64)},),)
            return torch.export.export(self._module(), self.args, dynamic_shapes=dims)

    def compile_jit(ep, config):
        size = int(next(iter(ep.graph.nodes)).meta["val"].shape[0])
        return Compiled(lambda flat: [torch.full_like(flat[0], size)])

    monkeypatch.setattr("minimizer.oracle.stages.compile_jit", compile_jit)
    made = Session(OfAnySize(function(lambda x: (torch.full_like(x, x.shape[0]),)), X), {})
    made.compile("jit", "")
    assert made.judge([X]).status == "pass"
    assert made.judge([torch.ones(5)]).failure.kind == "wrong_value"


def test_what_is_right_is_not_exported_again():
    exports = []

    class Counting(Subject):
        def export(self):
            exports.append(1)
            return super().export()

    made = Session(Counting(function(double), X), {})
    made.spend_ep()
    made._call = lambda flat: [flat[0] * 2]
    assert made.judge([X]).status == "pass"
    assert len(exports) == 1
    made._call = lambda flat: [flat[0] * 3]
    assert made.judge([X]).failed
    assert len(exports) == 2


def test_a_file_that_is_no_package_is_a_load_error(tmp_path):
    (tmp_path / "junk.pt2").write_bytes(b"junk")
    with pytest.raises(StageError) as raised:
        session(double, double).load(str(tmp_path / "junk.pt2"))
    assert (raised.value.failure.kind, raised.value.failure.stage) == ("load_error", "load")


# Manners


def test_wrong_now_and_then_is_nondeterministic():
    calls = itertools.count()
    made = session(double, lambda x: [x * 2 if next(calls) % 4 else x])
    next(calls)
    failure = made.judge([X], manner="again").failure
    assert failure.kind == "nondeterministic"
    assert f"of {AGAIN + 1} calls with the same inputs" in failure.message


def test_wrong_from_some_call_on_is_wrong_at_that_call():
    calls = itertools.count(1)
    made = session(double, lambda x: [x * 2 if next(calls) < 5 else x])
    verdict = made.judge([X], manner="again")
    assert (verdict.failure.kind, verdict.turn) == ("wrong_value", 4), "one call was judged before"


def test_a_second_load_that_answers_otherwise():
    made = session(double, double, again=lambda x: [x * 3])
    assert made.judge([X]).status == "pass"
    failure = made.judge([X], manner="reload").failure
    assert (failure.kind, failure.flavour) == ("wrong_value", "values, after a second load")


@pytest.mark.parametrize("manner", ["thread", "threads"])
def test_another_thread_that_is_answered_otherwise(manner):
    main = threading.get_ident()
    made = session(double, lambda x: [x * 2 if threading.get_ident() == main else x])
    assert made.judge([X]).status == "pass"
    failure = made.judge([X], manner=manner).failure
    assert failure.kind == "wrong_value"
    assert "thread" in failure.flavour


def test_two_threads_that_write_over_each_other():
    shared, meeting = {}, threading.Barrier(2)

    def compiled(x):
        if threading.current_thread() is threading.main_thread():
            return [x * 2]
        shared["x"] = x
        meeting.wait(timeout=30)
        return [shared["x"] * 2]

    made = session(double, compiled)
    failure = made.judge([X], [X + 1], manner="threads").failure
    assert failure.kind == "wrong_value"


@pytest.mark.parametrize("manner", ["", "again", "reload", "thread", "threads"])
def test_a_right_program_is_right_in_every_manner(manner):
    assert session(double, double, again=double).judge([X], [X + 1], manner=manner).status == "pass"


def test_what_is_wrong_as_usual_is_not_put_down_to_the_manner():
    made = session(double, lambda x: [x], again=lambda x: [x])
    assert made.judge([X], manner="reload").failure.flavour == "values"
