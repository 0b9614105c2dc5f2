"""Passes: flags of dtype int64 instead of uint8 (torch 2.13.0+cpu)."""

import os

import torch


class Model(torch.nn.Module):
    def forward(self, flags):
        return torch.ops.aten.any.dim(flags, 1)


def test_fn() -> bool:
    inputs = (torch.zeros(2, 1, dtype=torch.int64),)
    if (backend := os.environ.get("TORCH_COMPILE_BACKEND", "aoti")) == "aoti":
        dims = {"flags": {0: torch.export.Dim("rows", min=2, max=64)}}
        program = torch.export.export(Model(), inputs, dynamic_shapes=dims)
        path = torch._inductor.aoti_compile_and_package(program)
        compiled = torch._inductor.aoti_load_package(path)
    else:
        compiled = torch.compile(Model(), backend=backend, dynamic=True)
    expected, actual = Model()(*inputs), compiled(*inputs)
    print(f"eager    {expected}\ncompiled {actual}")
    return actual.dtype == expected.dtype and torch.equal(actual, expected)


if __name__ == "__main__":
    raise SystemExit(not test_fn())
