"""select_scatter + zero_ gives wrong values under AOTInductor (torch 2.13.0+cpu)."""

import copy
import os

import torch


class Model(torch.nn.Module):
    def forward(self, table, row):
        select_scatter = torch.ops.aten.select_scatter.default(table, row, 0, 1)
        torch.ops.aten.zero_.default(table)
        return select_scatter


def test_fn() -> bool:
    inputs = (torch.zeros(2, 2), torch.ones(2))
    if (backend := os.environ.get("TORCH_COMPILE_BACKEND", "aoti")) == "aoti":
        w = torch.export.Dim("w", min=2, max=64)
        dims = {"table": {1: w}, "row": {0: w}}
        program = torch.export.export(Model(), inputs, dynamic_shapes=dims)
        path = torch._inductor.aoti_compile_and_package(program)
        compiled = torch._inductor.aoti_load_package(path)
    else:
        compiled = torch.compile(Model(), backend=backend, dynamic=True)
    mine, theirs = copy.deepcopy(inputs), copy.deepcopy(inputs)
    expected, actual = (Model()(*mine), mine), (compiled(*theirs), theirs)
    print(f"eager    {expected}\ncompiled {actual}")
    try:
        torch.testing.assert_close(actual, expected, equal_nan=True)
    except AssertionError as error:
        print(error)
        return False
    return True


if __name__ == "__main__":
    raise SystemExit(not test_fn())
