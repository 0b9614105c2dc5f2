"""arange + to.dtype gives wrong values under AOTInductor (torch 2.13.0+cpu)."""

import os

import torch


class Model(torch.nn.Module):
    def forward(self, size_of_n):
        n = size_of_n.shape[0]
        arange = torch.ops.aten.arange.default(n)
        to = torch.ops.aten.to.dtype(arange, torch.uint8)
        return torch.ops.aten.to.dtype(to, torch.float32)


def test_fn() -> bool:
    inputs = (torch.zeros(1000, dtype=torch.int8),)
    example = (torch.zeros(50, dtype=torch.int8),)
    if (backend := os.environ.get("TORCH_COMPILE_BACKEND", "aoti")) == "aoti":
        dims = {"size_of_n": {0: torch.export.Dim("n", min=2, max=1000)}}
        program = torch.export.export(Model(), example, dynamic_shapes=dims)
        path = torch._inductor.aoti_compile_and_package(program)
        compiled = torch._inductor.aoti_load_package(path)
    else:
        compiled = torch.compile(Model(), backend=backend, dynamic=True)
    expected, actual = Model()(*inputs), compiled(*inputs)
    print(f"eager    {expected}\ncompiled {actual}")
    return torch.allclose(actual, expected, 1.3e-06, 1e-05, equal_nan=True)


if __name__ == "__main__":
    raise SystemExit(not test_fn())
