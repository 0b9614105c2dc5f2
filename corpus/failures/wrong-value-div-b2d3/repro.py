"""aten.div.Tensor_mode gives wrong values under AOTInductor (torch 2.13.0+cpu)."""

import os

import torch


class Model(torch.nn.Module):
    def forward(self, price, step):
        div = torch.ops.aten.div.Tensor_mode(price, step, rounding_mode="floor")
        return div


def test_fn() -> bool:
    price = torch.ones(11)
    step = torch.tensor([-0.3, 0.7, 0.8, 0.7, 0.0, 0.3, 0.4, -0.5, 0.4, -0.7, 0.1])
    inputs = (price, step)
    example = (torch.zeros(2), torch.zeros(2))
    if (backend := os.environ.get("TORCH_COMPILE_BACKEND", "aoti")) == "aoti":
        n = torch.export.Dim("n", min=2, max=64)
        dims = {"price": {0: n}, "step": {0: n}}
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
