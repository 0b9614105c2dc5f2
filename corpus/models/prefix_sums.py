"""Sorts every row and accumulates it: the points of a Lorenz curve before scaling."""

import torch
from torch.export import Dim


class Model(torch.nn.Module):
    def forward(self, x):
        ordered = torch.sort(x.abs(), dim=1).values
        return torch.cumsum(ordered, dim=1)


def get_model():
    return Model().eval()


def get_example_inputs():
    return (torch.randn(4, 11, generator=torch.Generator().manual_seed(1)),)


def get_dynamic_shapes():
    return {"x": {0: Dim("rows", min=1, max=32)}}
