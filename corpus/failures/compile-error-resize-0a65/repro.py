"""aten.resize_.default cannot be compiled under AOTInductor (torch 2.13.0+cpu)."""

import copy
import os

import torch


class Model(torch.nn.Module):
    def forward(self, clone):
        rows = clone.shape[0]
        return torch.ops.aten.resize_.default(clone, [rows, 1])


def test_fn() -> bool:
    inputs = (torch.zeros(2, 1),)
    print("eager   ", Model()(*copy.deepcopy(inputs)))
    try:
        if (backend := os.environ.get("TORCH_COMPILE_BACKEND", "aoti")) == "aoti":
            dims = {"clone": {0: torch.export.Dim("rows", min=2, max=64)}}
            program = torch.export.export(Model(), inputs, dynamic_shapes=dims)
            torch._inductor.aoti_compile_and_package(program)
        else:
            torch.compile(Model(), backend=backend, dynamic=True)(*inputs)
    except Exception as error:  # noqa: BLE001
        print("compiled", repr(error)[:300])
        return False
    return True


if __name__ == "__main__":
    raise SystemExit(not test_fn())
