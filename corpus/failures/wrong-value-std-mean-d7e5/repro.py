"""aten.std_mean.correction gives wrong values under AOTInductor (torch 2.13.0+cpu)."""

import os

import torch


class Model(torch.nn.Module):
    def forward(self, samples):
        return torch.ops.aten.std_mean.correction(samples, [1])[1]


def test_fn() -> bool:
    inputs = (torch.zeros(3, 0),)
    example = (torch.zeros(3, 2),)
    if (backend := os.environ.get("TORCH_COMPILE_BACKEND", "aoti")) == "aoti":
        dims = {"samples": {1: torch.export.Dim("taken", min=0, max=64)}}
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
