"""torch.amin gives wrong values under AOTInductor (torch 2.13.0+cpu)."""

import os

import torch


class Model(torch.nn.Module):
    def forward(self, rows):
        return torch.amin(rows, [1])


def test_fn() -> bool:
    rows = torch.tensor([[172, 175, 245, 192, 195, 251, 195, 231]], dtype=torch.uint8)
    inputs = (rows,)
    if (backend := os.environ.get("TORCH_COMPILE_BACKEND", "aoti")) == "aoti":
        dims = {"rows": {1: torch.export.Dim("width", min=2, max=128)}}
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
