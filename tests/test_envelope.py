"""Which differences a legal compiler may make, and which it may not."""

import pytest

torch = pytest.importorskip("torch")

from torch.utils import _pytree as pytree  # noqa: E402

from minimizer.oracle.compare import compare_leaf  # noqa: E402
from minimizer.oracle.envelope import Envelope  # noqa: E402
from minimizer.oracle.free import Free  # noqa: E402

INF, NAN = float("inf"), float("nan")


def judge(f, inputs, answer):
    """What is left of the difference between eager and `answer(eager)`, for one function of tensors."""

    class Model(torch.nn.Module):
        def forward(self, *args):
            return f(*args)

    ep = torch.export.export(Model().eval(), tuple(inputs))

    def run(seed, noise, promote):
        with torch.no_grad():
            execution = Free(ep.module(check_guards=False), seed, noise, promote=promote)
            return execution.call([x.clone() for x in inputs])

    expected = pytree.tree_leaves(f(*[x.clone() for x in inputs]))[0]
    actual = answer(expected)
    mismatch, _ = compare_leaf(0, actual, expected)
    assert mismatch is not None, "there is nothing to judge"
    return Envelope(run).judge(mismatch, actual, expected)


def off(amount):
    return lambda expected: expected + amount


def at(place, value):
    def answer(expected):
        changed = expected.clone()
        changed[place] = value
        return changed

    return answer


def gaussian(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def logistic(x):
    for _ in range(60):
        x = 3.9 * x * (1 - x)
    return x


def bucket(x):
    return ((x.exp().log() * 7).sin() > 0.0).to(torch.int64)


def padded(x):
    out = torch.empty(4)
    out[:2] = x
    return out * 2


def ruined(x):
    """As if eager's memory that nobody wrote to held large numbers."""
    return padded(x) if torch.compiler.is_exporting() else torch.cat([x * 2, torch.full((2,), 1e30)])


def pooled(x):
    return torch.nn.functional.max_pool2d(x, 2, return_indices=True)[1]


def columns(x, i):
    out = torch.zeros(2, 3)
    out[:, i] = x
    return out


CANCEL = torch.tensor([1e8, 1.0, -1e8]).repeat(20)
TIES = torch.tensor([1.0, 2.0, 2.0, 0.0, 2.0])
SEVERAL_NAN = torch.tensor([[[[1.0, NAN, 5.0, 2.0], [NAN, 3.0, 7.0, 0.0]]]])
HALVES = torch.tensor([1.3, 2.7]).half()
ON_THE_EDGE = torch.tensor([2.0 * torch.pi / 7, 1.0, 0.5])

HUGE = torch.tensor([[1e30, 1e30, 1e30]])
RAMP = torch.arange(60.0)

FORGIVEN = {
    "overflow while a product is formed": (lambda x: x.prod(), [RAMP], lambda e: torch.tensor(NAN)),
    "overflow while a variance is formed": (
        lambda x: torch.nn.functional.layer_norm(x, (3,)),
        [HUGE],
        lambda e: torch.zeros(1, 3),
    ),
    "a remainder without a significant digit": (lambda x: x % 1.5, [HUGE], lambda e: e + 0.7),
    "a position that is rounded": (
        lambda x: torch.nn.functional.interpolate(x, scale_factor=1.5, mode="bilinear"),
        [gaussian(1, 1, 4, 40)],
        off(2e-5),
    ),
    "a composite function at infinity": (
        torch.nn.functional.mish,
        [torch.tensor([-INF, 1.0])],
        lambda e: torch.tensor([0.0, e[1].item()]),
    ),
    "rounding of a sum that cancels": (lambda x: x.sum(), [CANCEL], off(8.0)),
    "rounding of large squares": (lambda x: (x + 1e4).square() - 1e8, [gaussian(5)], off(8.0)),
    "a chaotic map": (logistic, [torch.tensor([0.3, 0.4])], off(0.3)),
    "a comparison of rounded values": (bucket, [ON_THE_EDGE], lambda e: torch.cat([1 - e[:1], e[1:]])),
    "another of equal elements": (lambda x: x.argmax(0), [TIES], lambda e: torch.tensor(4)),
    "another order of equal elements": (
        lambda x: torch.sort(x, 0)[1],
        [TIES],
        lambda e: torch.tensor([3, 0, 4, 1, 2]),
    ),
    "another of equal largest": (lambda x: x.topk(2, 0)[1], [TIES], lambda e: torch.tensor([4, 1])),
    "another NaN of a window": (pooled, [SEVERAL_NAN], lambda e: torch.tensor([[[[5 - e[0, 0, 0, 0], 6]]]])),
    "memory that nobody wrote": (padded, [torch.ones(2)], at(3, 77.0)),
    "a cast out of range": (
        lambda x: x.to(torch.int32),
        [torch.tensor([1e20, 1.0, NAN])],
        at(0, 2**31 - 1),
    ),
    "a cast of NaN": (lambda x: x.to(torch.int64), [torch.tensor([NAN, 1.0])], at(0, 0)),
    "a cast that is written into a tensor": (
        lambda x: torch.zeros(2, dtype=torch.int32).copy_(x),
        [torch.tensor([NAN, 1.0])],
        at(0, 77),
    ),
    "another of the rows that are written to one place": (
        lambda x, i: torch.zeros(3).index_put((i,), x),
        [torch.tensor([1.0, 2.0, 3.0]), torch.tensor([1, 1, 0])],
        at(1, 1.0),
    ),
    "another of the columns that are written to one place": (
        columns,
        [torch.arange(6.0).view(2, 3), torch.tensor([1, 1, 0])],
        at((0, 1), 0.0),
    ),
    "another of the numbers that are scattered to one place": (
        lambda x, i: torch.zeros(2, 2, dtype=torch.int64).scatter(1, i, x),
        [torch.arange(6).view(2, 3), torch.tensor([[1, 0, 1], [0, 0, 0]])],
        at((0, 1), 0),
    ),
    "another of the rows that are copied to one place": (
        lambda x, i: torch.zeros(2, 3).index_copy(0, i, x),
        [torch.arange(6.0).view(2, 3), torch.tensor([1, 1])],
        at(1, torch.tensor([0.0, 1.0, 2.0])),
    ),
    "a size that depends on rounded data": (
        lambda x: x[((x.exp().log() * 7).sin() > 0.0)],
        [ON_THE_EDGE],
        lambda e: e[1:] if len(e) > 1 else torch.cat([e, e]),
    ),
    "a shift by too much": (lambda x: x << 70, [torch.tensor([1, 3])], lambda e: e + 1),
    "half precision in between": (
        lambda x: (x * 1.1 - x) * 100,
        [torch.tensor([1.3, 2.7]).half()],
        off(0.05),
    ),
}

WRONG = {
    "a sum that is far off": (lambda x: x.sum(), [CANCEL], off(1e4)),
    "one element of a sum": (lambda x: x.sum(1), [gaussian(5, 5)], at(2, 0.5)),
    "floor division of inputs": (
        lambda x, y: torch.floor_divide(x, y),
        [torch.tensor([0.6, 1.0]), torch.tensor([0.2, 0.1])],
        at(1, 10.0),
    ),
    "a cast of an input": (lambda x: x.to(torch.int32), [torch.tensor([2.9999998])], at(0, 3)),
    "a cast in range": (lambda x: x.to(torch.int32), [torch.tensor([1e20, 7.0])], at(1, 8)),
    "the sign of one over zero": (lambda x: x.reciprocal(), [torch.tensor([-0.0, 2.0])], at(0, INF)),
    "an element that is not the largest": (lambda x: x.argmax(0), [gaussian(9)], lambda e: e - 1),
    "an index of a stable sort": (
        lambda x: torch.sort(x, dim=0, stable=True)[1],
        [TIES],
        lambda e: torch.tensor([3, 0, 4, 1, 2]),
    ),
    "a number of a window with NaN": (pooled, [SEVERAL_NAN], at((0, 0, 0, 0), 0)),
    "another number of a window": (pooled, [SEVERAL_NAN], at((0, 0, 0, 1), 2)),
    "memory that was written": (padded, [torch.ones(2)], at(0, 77.0)),
    "a number beside one that is nothing like it": (ruined, [torch.ones(2)], at(0, 77.0)),
    "NaN for a number": (lambda x: x.relu() + 1, [gaussian(4)], at(1, NAN)),
    "a number for NaN": (lambda x: x + 1, [torch.tensor([NAN, 1.0])], at(0, 1.0)),
    "infinity for a number": (lambda x: x.exp(), [gaussian(4)], at(1, INF)),
    "an integer": (lambda x: x * 3, [torch.tensor([1, 2])], at(1, 7)),
    "a comparison of inputs": (lambda x: x > 0.5, [torch.tensor([0.5, 0.6])], at(0, True)),
    "a number that was not written to that place": (
        lambda x, i: torch.zeros(3).index_put((i,), x),
        [torch.tensor([1.0, 2.0, 3.0]), torch.tensor([1, 1, 0])],
        at(0, 1.0),
    ),
    "one of the writes where all are added": (
        lambda x, i: torch.zeros(3).index_put((i,), x, accumulate=True),
        [torch.tensor([1.0, 2.0, 3.0]), torch.tensor([1, 1, 0])],
        at(1, 1.0),
    ),
    "a row that was copied to a place of its own": (
        lambda x, i: torch.zeros(2, 3).index_copy(0, i, x),
        [torch.arange(6.0).view(2, 3), torch.tensor([1, 0])],
        at(1, torch.tensor([3.0, 4.0, 5.0])),
    ),
    "a size that depends on inputs": (lambda x: x[x > 0.5], [torch.tensor([0.5, 0.6])], lambda e: e[:0]),
    "another dtype": (lambda x: x + 1, [gaussian(3)], lambda e: e.double()),
    "another layout": (lambda x: x * 2, [gaussian(2, 3)], lambda e: e.t().contiguous().t()),
}


@pytest.mark.parametrize(("f", "inputs", "answer"), FORGIVEN.values(), ids=FORGIVEN.keys())
def test_what_a_compiler_may_do(f, inputs, answer):
    left = judge(f, inputs, answer)
    assert left is None, left.figures


@pytest.mark.parametrize(("f", "inputs", "answer"), WRONG.values(), ids=WRONG.keys())
def test_what_a_compiler_may_not_do(f, inputs, answer):
    assert judge(f, inputs, answer) is not None


def test_only_the_elements_without_excuse_are_left():
    x = torch.tensor([1e20, 7.0, 3.0])
    left = judge(lambda x: x.to(torch.int32), [x], lambda e: torch.tensor([5, 7, 4], dtype=torch.int32))
    assert left.wrong.tolist() == [False, False, True]
    assert left.figures == "1 of 3 elements differ; worst at [2]: eager 3, compiled 4 (int32, off by 1)"


def test_runs_are_made_once_and_only_when_needed():
    asked = []

    def run(seed, noise, promote):
        asked.append((seed, noise, promote))
        return [torch.ones(2, dtype=torch.float64), torch.ones(2, dtype=torch.float64)]

    envelope = Envelope(run)
    mismatch, _ = compare_leaf(1, torch.ones(2).double(), torch.ones(2))
    assert envelope.judge(mismatch, torch.ones(2).double(), torch.ones(2)) == mismatch
    assert asked == []
    mismatch, _ = compare_leaf(1, torch.full((2,), 2.0), torch.ones(2))
    for _ in range(2):
        assert envelope.judge(mismatch, torch.full((2,), 2.0), torch.ones(2)) is not None
    assert asked[0] == (0, 0.0, True)
    assert [noise for _, noise, _ in asked[1:]] == [1.0] * (len(asked) - 1)
    assert len({seed for seed, _, _ in asked}) == len(asked)


def test_what_cannot_run_in_double_precision_runs_as_it_is():
    def run(seed, noise, promote):
        if promote:
            raise RuntimeError("not implemented for 'Double'")
        return [torch.ones(2)]

    envelope = Envelope(run)
    mismatch, _ = compare_leaf(0, torch.full((2,), 2.0), torch.ones(2))
    assert envelope.judge(mismatch, torch.full((2,), 2.0), torch.ones(2)) is not None
    assert envelope.unavailable == ""


def test_what_cannot_run_at_all_forgives_nothing():
    def run(seed, noise, promote):
        raise RuntimeError("no\nmore")

    envelope = Envelope(run)
    mismatch, _ = compare_leaf(0, torch.full((2,), 2.0), torch.ones(2))
    assert envelope.judge(mismatch, torch.full((2,), 2.0), torch.ones(2)) == mismatch
    assert envelope.unavailable == "RuntimeError: no"


def test_scalars_that_vary_are_free():
    mismatch, _ = compare_leaf(0, 4, 3)
    assert Envelope(lambda seed, *_: [seed % 2 + 3]).judge(mismatch, 4, 3) is None
    assert Envelope(lambda *_: [3]).judge(mismatch, 4, 3) == mismatch


def test_a_run_that_an_operator_refuses_is_left_out():
    def run(seed, noise, promote):
        if seed == 3:
            raise IndexError("out of range")
        return [torch.tensor([1.0, 2.0])]

    envelope = Envelope(run)
    eager, compiled = torch.tensor([1.0, 2.0]), torch.tensor([1.0, 9.0])
    mismatch, _ = compare_leaf(0, compiled, eager)
    assert envelope.judge(mismatch, compiled, eager) is not None
    assert envelope.refused == ["IndexError: out of range"]


LONG = 100_000


def up(steps):
    """An answer off by some units in the last place."""

    def answer(expected):
        for _ in range(steps):
            expected = torch.nextafter(expected, torch.full_like(expected, INF))
        return expected

    return answer


DEEP = {
    "a sum in half precision in another order": (
        lambda x: x.sum(),
        [gaussian(LONG).bfloat16()],
        up(6),
        False,
    ),
    "a sum of half-precision numbers that cancel": (
        lambda x: x.sum(),
        [torch.cat([gaussian(LONG // 2), -gaussian(LONG // 2)]).half()],
        off(0.02),
        False,
    ),
    "a half-precision sum without its last sixteenth": (
        lambda x: x.sum(),
        [torch.ones(LONG).bfloat16()],
        lambda expected: expected * 15 / 16,
        True,
    ),
    "a half-precision mean that was not divided by all": (
        lambda x: x.mean(),
        [torch.ones(LONG).half()],
        lambda expected: expected * 1.01,
        True,
    ),
    "a long sum in another order": (lambda x: x.sum(), [gaussian(LONG)], off(8e-4), False),
    "a long sum without its tail of 17": (lambda x: x.sum(), [torch.ones(LONG)], off(-17.0), True),
    "a long sum without its last number": (lambda x: x.sum(), [torch.ones(LONG)], off(-1.0), True),
    "rows summed, one of them short": (
        lambda x: x.sum(1),
        [torch.ones(4, LONG // 4)],
        at(2, LONG // 4 - 16),
        True,
    ),
    "a long product of rows in another order": (
        lambda a, b: a @ b,
        [gaussian(2, 4096), gaussian(4096, 2, seed=1)],
        off(2e-4),
        False,
    ),
    "a product of matrices without its last block": (
        lambda a, b: a @ b,
        [torch.ones(2, 4096), torch.ones(4096, 2)],
        off(-8.0),
        True,
    ),
    "a cast to float32 does not hide an error": (
        lambda x: (x.double() * 3).float() * 2,
        [gaussian(8)],
        lambda expected: expected * (1 + 1e-4),
        True,
    ),
    "a cast to float32 in between, as a compiler may leave it out": (
        lambda x: (x.double() + 1e9).float() - 1e9,
        [gaussian(8)],
        lambda expected: expected + 32.0,
        False,
    ),
    "a cast to half in between loses what it loses": (
        lambda x: x.half().float() + 0.5,
        [torch.tensor([1.0, 2.0])],
        off(0.25),
        True,
    ),
}


@pytest.mark.parametrize(("f", "inputs", "answer", "wrong"), DEEP.values(), ids=DEEP.keys())
def test_deep_reductions_and_casts_neither_alarm_nor_hide(f, inputs, answer, wrong):
    assert (judge(f, inputs, answer) is not None) == wrong
