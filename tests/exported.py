"""Models of every shape that translation must carry over; shared by the tests of tracing and interpreting."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch._higher_order_ops.map import map as over_rows
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop
from torch.export import Dim

torch.manual_seed(0)


@torch.library.custom_op("exported_models::twice", mutates_args=())
def twice(x: torch.Tensor) -> torch.Tensor:
    return x * 2


@twice.register_fake
def _(x):
    return torch.empty_like(x)


class Pair(NamedTuple):
    """A container that only its own file knows."""

    first: torch.Tensor
    second: torch.Tensor


@dataclass
class Sample:
    """A module, how it is called, its dynamic shapes, and whether further inputs of other sizes are tried."""

    module: torch.nn.Module
    args: tuple[Any, ...]
    kwargs: dict[str, Any] = field(default_factory=dict)
    dynamic: Any = None
    others: tuple[tuple[Any, ...], ...] = ()


def function(f, **state):
    """A module that calls `f(self, ...)`; `state` becomes buffers."""

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            for name, tensor in state.items():
                self.register_buffer(name, tensor)

    Model.forward = f
    return Model().eval()


class Layers(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU(), torch.nn.Linear(3, 2))
        self.norm = torch.nn.BatchNorm1d(2)
        self.shared = self.body[0]
        self.table = torch.tensor([[1.0, 2.0]])

    def forward(self, x):
        return self.norm(self.body(x)) + self.shared(x)[:, :2] + self.table


def dynamic_reshape(self, x):
    return x.reshape(x.shape[0] * 2, -1).sum(0, keepdim=True).expand(x.shape[0], -1) / x.shape[0]


def derived(self, x, y):
    return x.view(y.shape[0], 2) + y.unsqueeze(1)


def nested(self, pair, options, *, scale=None, extra):
    (x, y), name = pair["both"], pair["name"]
    out = x + y * extra[0]
    assert scale is None and name is None
    return {"sum": out, "parts": [out[:1], None, (options[1], 3)]}


def named_tuple(self, x):
    return torch.max(x, 1), torch.topk(x, 2, dim=1, largest=False)


def in_place(self, x):
    y = x.clone()
    first = y.view(-1)[:3]
    first.add_(1.0)
    z = y.relu()
    y.mul_(2.0)
    x.add_(10.0)
    return y, z


def nothing(self, x):
    x.add_(1)


def counting(self, x):
    self.count.add_(1)
    self.seen = self.seen + x.sum()
    return x * self.count


def branches(self, x):
    return torch.cond(x.sum() > 0, lambda x: x.sin() + 1, lambda x: (x - 1).cos(), (x,))


def loop(self, x):
    def more(i, y):
        return i < 3

    return while_loop(more, lambda i, y: (i + 1, y.relu() - 0.5), (torch.zeros((), dtype=torch.int64), x))


def loop_over_operands(self, x, y):
    def more(i, z):
        return i < 3

    return while_loop(more, lambda i, z: (i + 1, z * y - 0.5), (torch.zeros((), dtype=torch.int64), x))


def rows(self, x, y):
    return over_rows(lambda row, other: row.relu() + other, x, y)


def running(self, x):
    return scan(lambda sum_, row: (sum_ + row.relu(), sum_ * 1.0), torch.zeros_like(x[0]), x)


def item(self, x):
    n = x.max().item()
    torch._check(n >= 2)
    torch._check(n <= 50)
    return torch.arange(n, dtype=torch.float32) * 2


def nonzero(self, x):
    found = x.nonzero()
    return found + 1, found.shape[0]


def no_grad(self, x):
    with torch.no_grad():
        y = (x * 2).relu()
        z = y + 1
    return y, z * x


def custom(self, x):
    return torch.ops.exported_models.twice(x) + 1


def dtypes(self, x):
    ones = torch.ones(x.shape, dtype=torch.int8, device=x.device)
    wide = x.to(torch.float64).sum(dtype=torch.float32)
    full = torch.full((2,), float("-inf"), dtype=torch.bfloat16)
    return ones, wide, full, x.to(memory_format=torch.channels_last), torch.zeros_like(x, dtype=torch.bool)


def indexing(self, x, i):
    return x[:, 1:-1:2, ..., None], x[[2, 0]], x[i, :, 0], x[..., -1], x[None, 0], x[x > 100]


def scalars(self, x, n, flag, name):
    return x * n if flag else x + n


def sizes_out(self, x):
    return x + 1, x.shape[0], x.shape[0] * 2, 7


INF = float("inf")
N = Dim("n", min=2, max=64)
HALF = Dim("half", min=2, max=32)

SAMPLES = {
    "layers": Sample(
        Layers().eval(), (torch.randn(5, 4),), dynamic={"x": {0: N}}, others=((torch.randn(9, 4),),)
    ),
    "dynamic": Sample(
        function(dynamic_reshape), (torch.randn(5, 4),), dynamic={"x": {0: N}}, others=((torch.randn(9, 4),),)
    ),
    "derived": Sample(
        function(derived),
        (torch.randn(10), torch.randn(5)),
        dynamic={"x": {0: 2 * HALF}, "y": {0: HALF}},
        others=((torch.randn(6), torch.randn(3)),),
    ),
    "derived alone": Sample(
        function(lambda self, x: x.view(2, -1).sum(0) * x.shape[0]),
        (torch.randn(10),),
        dynamic={"x": {0: 2 * HALF}},
        others=((torch.randn(6),),),
    ),
    "multiple": Sample(
        function(lambda self, x: x * x.shape[0]),
        (torch.randn(10),),
        dynamic={"x": {0: 2 * HALF}},
        others=((torch.randn(6),),),
    ),
    "nested": Sample(
        function(nested),
        ({"both": (torch.randn(3, 2), torch.randn(3, 2)), "name": None}, [1.5, torch.randn(2)]),
        {"extra": [torch.randn(2)]},
        dynamic={
            "pair": {"both": ({0: N}, {0: N}), "name": None},
            "options": [None, None],
            "extra": [None],
        },
    ),
    "named tuple": Sample(function(named_tuple), (torch.randn(4, 5),)),
    "in place": Sample(function(in_place), (torch.randn(4, 5),)),
    "buffers": Sample(function(counting, count=torch.tensor(3), seen=torch.zeros(())), (torch.randn(4),)),
    "cond": Sample(
        function(branches),
        (torch.ones(4),),
        dynamic={"x": {0: N}},
        others=((-torch.ones(7),), (torch.ones(3),)),
    ),
    "loop": Sample(function(loop), (torch.randn(4),), others=((torch.randn(4),),)),
    "loop over operands": Sample(function(loop_over_operands), (torch.randn(4), torch.randn(4))),
    "map": Sample(function(rows), (torch.randn(4, 3), torch.randn(3))),
    "scan": Sample(function(running), (torch.randn(4, 3),)),
    "item": Sample(function(item), (torch.tensor([3, 9, 4]),), others=((torch.tensor([3, 2, 1]),),)),
    "nonzero": Sample(
        function(nonzero), (torch.tensor([0.0, 1.0, 2.0]),), others=((torch.tensor([0.0, 0.0, 2.0]),),)
    ),
    "no grad": Sample(function(no_grad), (torch.randn(4),)),
    "custom operator": Sample(function(custom), (torch.randn(4),)),
    "dtypes": Sample(function(dtypes), (torch.randn(1, 2, 3, 4),)),
    "indexing": Sample(function(indexing), (torch.randn(3, 6, 2), torch.tensor([1, 0, 2]))),
    "scalars": Sample(function(scalars), (torch.randn(3), 3, True, "name")),
    "sizes out": Sample(
        function(sizes_out), (torch.randn(5),), dynamic={"x": {0: N}}, others=((torch.randn(8),),)
    ),
    "nothing but a constant": Sample(function(lambda self, x: x), (torch.randn(3),)),
    "names of functions": Sample(
        function(lambda self, max, *, float: max.view(-1)[: max.shape[0]] + float.amax() / 2),
        (torch.randn(5, 2),),
        {"float": torch.tensor([1.0, -INF])},
        dynamic={"max": {0: N}, "float": None},
    ),
    "returns nothing": Sample(function(nothing), (torch.ones(2),)),
    "dropped input": Sample(function(lambda self, x, y: x + 1), (torch.randn(3), torch.randn(2))),
}
