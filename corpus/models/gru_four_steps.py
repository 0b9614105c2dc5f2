"""A GRU cell unrolled over four steps from a zero state."""

import torch
from torch.export import Dim


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = torch.nn.GRUCell(5, 9)

    def forward(self, steps):
        state = steps.new_zeros(steps.shape[1], 9)
        for step in steps.unbind(0):
            state = self.cell(step, state)
        return state


def get_model():
    torch.manual_seed(0)
    return Model().eval()


def get_example_inputs():
    return (torch.randn(4, 3, 5, generator=torch.Generator().manual_seed(1)),)


def get_dynamic_shapes():
    return {"steps": {1: Dim("batch", min=1, max=32)}}
