"""operator.mul, Tensor.copy_ gives wrong values under AOTInductor (torch 2.13.0+cpu).
"""

import copy
import os

import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("peak", torch.ones(1))

    def forward(self):
        return self.peak.copy_(self.peak * 0.5)


def test_fn() -> bool:
    model = Model()
    inputs = ()
    backend = os.environ.get("TORCH_COMPILE_BACKEND", "aoti")
    if backend == "aoti":
        program = torch.export.export(model, inputs)
        path = torch._inductor.aoti_compile_and_package(program)
        compiled = torch._inductor.aoti_load_package(path)
    else:
        compiled = torch.compile(model, backend=backend, disable=backend == "eager")
    eager = copy.deepcopy(model)
    for _ in range(2):
        expected = eager(*copy.deepcopy(inputs))
        actual = compiled(*copy.deepcopy(inputs))
    print(f"eager    {expected}\ncompiled {actual}")
    return torch.allclose(actual, expected, 1.3e-06, 1e-05, equal_nan=True)


if __name__ == "__main__":
    raise SystemExit(not test_fn())
