"""Strongest response in each cell of a fixed grid, whatever the size of the map."""

import torch
import torch.nn.functional as F
from torch.export import Dim


class Model(torch.nn.Module):
    def forward(self, response):
        return F.adaptive_max_pool2d(torch.abs(response), (3, 4))


def get_model():
    return Model().eval()


def get_example_inputs():
    return (torch.randn(1, 2, 9, 8, generator=torch.Generator().manual_seed(1)),)


def get_dynamic_shapes():
    return {"response": {2: Dim("height", min=3, max=48), 3: Dim("width", min=4, max=48)}}
