"""torch.full + torch.cumsum cannot be compiled under AOTInductor (torch 2.13.0+cpu)."""

import os

import torch


class Model(torch.nn.Module):
    def forward(self):
        return torch.cumsum(torch.full([], 1.0), 0)


def test_fn() -> bool:
    print("eager   ", Model()())
    try:
        if (backend := os.environ.get("TORCH_COMPILE_BACKEND", "aoti")) == "aoti":
            program = torch.export.export(Model(), ())
            torch._inductor.aoti_compile_and_package(program)
        else:
            torch.compile(Model(), backend=backend, disable=backend == "eager")()
    except Exception as error:  # noqa: BLE001
        print("compiled", repr(error)[:300])
        return False
    return True


if __name__ == "__main__":
    raise SystemExit(not test_fn())
