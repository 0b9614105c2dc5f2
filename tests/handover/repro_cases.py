"""Cases of every shape that a repro script must be able to show; shared by the tests of this folder."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from minimizer.case import Case, Settings, Value
from minimizer.handover.repro import repro_source
from minimizer.oracle.verdict import Failure
from minimizer.program import Graph, Input, Node, Program, Ref, State, Sym, Symbol, TensorMeta, Tree
from minimizer.sandbox.asan import FLAGS, OPTIONS
from strategies.values import Fill

VERSIONS = {"torch": "2.13.0+cpu"}
WRONG = Failure("wrong_value", "run", flavour="values")
RANDN = "torch.randn(17, 3, generator=torch.Generator().manual_seed(0))"


def meta(dtype, *shape, stride=None):
    """A contiguous tensor's meta; symbolic sizes count as 1 in the strides unless they are given."""
    steps, step = [], 1
    for size in reversed(shape):
        steps.append(step)
        step = step * size if isinstance(size, int) and isinstance(step, int) else f"{step}*({size})"
    return TensorMeta(dtype, tuple(shape), tuple(stride or reversed(steps)))


def value(dtype, *shape, stride=None):
    return Value(dtype, shape, Fill("zeros"), stride=stride)


@dataclass(frozen=True)
class Sample:
    """A case, how it fails, and the code of its inputs and state."""

    case: Case
    failure: Failure
    values: tuple[str, ...]
    state: dict[str, str] = field(default_factory=dict)
    options: dict[str, object] = field(default_factory=dict)

    def text(self, title="something is wrong"):
        return repro_source(
            self.case, self.failure, self.values, self.state, title=title, versions=VERSIONS, **self.options
        )


RELU = Program(
    (Input("x", meta("float32", "n", 3)),),
    (Node("y", "aten.relu.default", (Ref("x"),), meta=meta("float32", "n", 3)),),
    Ref("y"),
    symbols=(Symbol("n", 2, 64, 8),),
)
MATMUL = Program(
    (Input("p", meta("int8", 1, 1, 2)), Input("q", meta("int8", 1, 2, 2))),
    (Node("m", "torch.matmul", (Ref("p"), Ref("q")), meta=meta("int8", 1, 1, 2)),),
    Ref("m"),
)
NESTED = Program(
    (
        Input("x", meta("float32", "n", 3)),
        Input("y", meta("int64", 4)),
        Input("z", meta("float32", 2, 3, 4, 5, stride=(60, 1, 15, 3))),
    ),
    (
        Node("w", "aten.mul_.Tensor", (Ref("x"), 2), meta=meta("float32", "n", 3), mutates=(0,)),
        Node("b", "torch.add", (Ref("w"), Ref("p")), meta=meta("float32", "n", 3)),
        Node("k", "aten.add_.Tensor", (Ref("count"), 1), meta=meta("int64"), mutates=(0,)),
    ),
    Tree("dict", ("out", "rest"), (Ref("b"), (Ref("z"), None))),
    state=(
        State("p", "parameter", meta("float32", 3), "p"),
        State("count", "buffer", meta("int64"), "count"),
    ),
    symbols=(Symbol("n", 0, None, 8),),
    args=(Ref("x"), Tree("dict", ("a",), ([Ref("y")],))),
    kwargs=(("mask", Ref("z")),),
)
COND = Program(
    (Input("x", meta("float32", "n", 3)), Input("y", meta("float32", "n", 3))),
    (
        Node("a", "aten.relu.default", (Ref("x"),), meta=meta("float32", "n", 3)),
        Node("b", "operator.add", (Ref("a"), 1), meta=meta("float32", "n", 3)),
        Node("c", "operator.mul", (Ref("b"), Ref("y")), meta=meta("float32", "n", 3)),
        Node("d", "aten.view.default", (Ref("c"), [Sym("3*n")]), meta=meta("float32", "3*n")),
        Node("p", "torch.sum", (Ref("d"),), meta=meta("float32")),
        Node("q", "operator.gt", (Ref("p"), 0), meta=meta("bool")),
        Node("e", "higher_order.cond", (Ref("q"), Graph("yes"), Graph("no"), (Ref("d"),)), meta=(None,)),
        Node("f", "operator.getitem", (Ref("e"), 0), meta=meta("float32", "3*n")),
    ),
    (Ref("f"), Ref("c")),
    symbols=(Symbol("n", 2, 64, 8),),
    graphs=(
        (
            "yes",
            Program(
                (Input("x", meta("float32", "3*n")),), (Node("r", "torch.relu", (Ref("x"),)),), (Ref("r"),)
            ),
        ),
        (
            "no",
            Program(
                (Input("x", meta("float32", "3*n")),), (Node("r", "torch.sin", (Ref("x"),)),), (Ref("r"),)
            ),
        ),
    ),
)

relu = Sample(Case(RELU, (value("float32", 17, 3),)), WRONG, (RANDN,))
by_name = replace(relu, case=replace(relu.case, program=replace(RELU, args=(), kwargs=(("x", Ref("x")),))))
int8_matmul = Sample(
    Case(MATMUL, (value("int8", 1, 1, 2), value("int8", 1, 2, 2))),
    Failure("wrong_metadata", "run", flavour="dtype"),
    ("torch.tensor([[[3, -2]]], dtype=torch.int8)", "torch.tensor([[[1, 2], [4, 5]]], dtype=torch.int8)"),
)
nested = Sample(
    Case(
        NESTED,
        (value("float32", 1, 3), value("int64", 4), value("float32", 2, 3, 4, 5, stride=(60, 1, 15, 3))),
    ),
    Failure("lost_mutation", "run", flavour="values"),
    (
        "torch.zeros(1, 3)",
        "torch.arange(4)",
        "torch.zeros(2, 3, 4, 5).to(memory_format=torch.channels_last)",
    ),
    {"p": "torch.ones(3)", "count": "torch.zeros((), dtype=torch.int64)"},
)
cond = Sample(
    Case(COND, (value("float32", 17, 3), value("float32", 17, 3))), WRONG, (RANDN, "torch.ones(17, 3)")
)


def with_settings(sample, **settings):
    return replace(sample, case=replace(sample.case, settings=Settings(**settings)))


def called_twice(sample):
    return replace(sample, case=replace(sample.case, earlier=(sample.case.values,)))


def called_before(sample, *values):
    """The sample after a call with other inputs, given as values and as code."""
    given, code = zip(*values)
    case = replace(sample.case, earlier=(given,))
    return replace(sample, case=case, options={**sample.options, "earlier_code": (code,)})


def failing_with(sample, kind, stage="run", flavour="", **options):
    options = {**sample.options, **options}
    return replace(sample, failure=Failure(kind, stage, flavour=flavour), options=options)


ASAN = (
    ("ASAN_OPTIONS", ":".join(OPTIONS)),
    ("LD_PRELOAD", "/usr/lib/libasan.so:/usr/lib/libstdc++.so"),
    ("TORCHINDUCTOR_CPP_MARCH", FLAGS),
)

SAMPLES = {
    "relu": relu,
    "int8_matmul": int8_matmul,
    "nested": nested,
    "cond": cond,
    "config": with_settings(relu, config=(("cpp.inject_relu_bug_TESTING_ONLY", "accuracy"),)),
    "two_calls": called_twice(nested),
    "another_call_before": called_before(relu, (value("float32", 2, 3), "torch.ones(2, 3)")),
    "another_call_before_by_name": called_before(by_name, (value("float32", 2, 3), "torch.ones(2, 3)")),
    "memory_is_shared": failing_with(relu, "wrong_aliasing", flavour="output shares memory with input"),
    "memory_is_shared_between_calls": failing_with(
        called_before(by_name, (value("float32", 2, 3), "torch.ones(2, 3)")), "wrong_aliasing"
    ),
    "second_load": with_settings(relu, manner="reload"),
    "other_thread": with_settings(nested, manner="thread"),
    "two_threads": called_before(
        with_settings(relu, manner="threads"), (value("float32", 2, 3), "torch.ones(2, 3)")
    ),
    "lost_error_after_a_call": failing_with(
        called_before(relu, (value("float32", 2, 3), "torch.ones(2, 3)")), "lost_error"
    ),
    "environment": with_settings(relu, environment=(("OMP_NUM_THREADS", "1"),)),
    "allocator": with_settings(relu, environment=(("MALLOC_PERTURB_", "165"), ("OMP_NUM_THREADS", "1"))),
    "inductor": with_settings(relu, path="inductor", config=(("max_autotune", False),)),
    "stride": failing_with(relu, "wrong_metadata", flavour="stride"),
    "type": failing_with(relu, "wrong_metadata", flavour="type"),
    "nondeterministic": failing_with(relu, "nondeterministic", flavour="values", repeat=5),
    "tolerance": failing_with(cond, "wrong_value", flavour="values", tolerance=(1e-3, 1e-4)),
    "export_error": failing_with(relu, "export_error", "export"),
    "cxx_error": failing_with(called_twice(relu), "cxx_error", "cxx"),
    "runtime_error": failing_with(nested, "runtime_error"),
    "lost_error": failing_with(relu, "lost_error"),
    "custom": replace(
        relu, options={"imports": ("", "import repro_ops  # noqa: F401  (registers operators)")}
    ),
    "custom_files": replace(
        relu,
        options={
            "imports": (
                "",
                'sys.path.insert(0, str(Path(__file__).with_name("repro_files")))',
                "import repro_ops  # noqa: F401  (registers operators)",
            )
        },
    ),
    "crash": failing_with(cond, "crash", repeat=3),
    "memory_error": failing_with(nested, "memory_error"),
    "sanitized": failing_with(
        with_settings(relu, config=(("cpp.simdlen", 1),), environment=ASAN), "memory_error"
    ),
    "hang": failing_with(int8_matmul, "hang", timeout=100),
}
