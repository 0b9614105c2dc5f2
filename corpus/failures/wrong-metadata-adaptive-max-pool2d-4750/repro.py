"""adaptive_max_pool2d gives another shape under AOTInductor (torch 2.13.0+cpu)."""

import os

import torch


class Model(torch.nn.Module):
    def forward(self, abs_1):
        adaptive_max_pool2d = torch.ops.aten.adaptive_max_pool2d.default(abs_1, [3, 4])
        return adaptive_max_pool2d[0]


def test_fn() -> bool:
    inputs = (torch.zeros(1, 1, 9, 4),)
    example = (torch.zeros(1, 1, 9, 8),)
    if (backend := os.environ.get("TORCH_COMPILE_BACKEND", "aoti")) == "aoti":
        dims = {"abs_1": {3: torch.export.Dim("width", min=4, max=48)}}
        program = torch.export.export(Model(), example, dynamic_shapes=dims)
        path = torch._inductor.aoti_compile_and_package(program)
        compiled = torch._inductor.aoti_load_package(path)
    else:
        compiled = torch.compile(Model(), backend=backend, dynamic=True)
    expected, actual = Model()(*inputs), compiled(*inputs)
    print(f"eager    {expected}\ncompiled {actual}")
    try:
        torch.testing.assert_close(actual, expected, equal_nan=True)
    except AssertionError as error:
        print(error)
        return False
    return True


if __name__ == "__main__":
    raise SystemExit(not test_fn())
