"""A residual block whose weights and activations are bfloat16."""

import torch
from torch.export import Dim


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.LayerNorm(16)
        self.widen = torch.nn.Linear(16, 32)
        self.narrow = torch.nn.Linear(32, 16)

    def forward(self, x):
        return x + self.narrow(torch.relu(self.widen(self.norm(x))))


def get_model():
    torch.manual_seed(0)
    return Model().eval().to(torch.bfloat16)


def get_example_inputs():
    return (torch.randn(4, 16, generator=torch.Generator().manual_seed(1)).to(torch.bfloat16),)


def get_dynamic_shapes():
    return {"x": {0: Dim("batch", min=1, max=64)}}
