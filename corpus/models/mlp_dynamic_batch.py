"""Two hidden layers over a batch of any size."""

import torch
from torch.export import Dim


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(12, 24),
            torch.nn.ReLU(),
            torch.nn.Linear(24, 24),
            torch.nn.Tanh(),
            torch.nn.Linear(24, 5),
        )

    def forward(self, x):
        return self.layers(x)


def get_model():
    torch.manual_seed(0)
    return Model().eval()


def get_example_inputs():
    return (torch.randn(6, 12, generator=torch.Generator().manual_seed(1)),)


def get_dynamic_shapes():
    return {"x": {0: Dim("batch", min=1, max=128)}}
