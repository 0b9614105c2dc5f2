"""Wraps angles into one period, given per angle."""

import torch
from torch.export import Dim


class Model(torch.nn.Module):
    def forward(self, angle, period):
        return torch.remainder(angle, period)


def get_model():
    return Model().eval()


def get_example_inputs():
    return (torch.tensor([0.5, 7.0, -1.0, 3.0]), torch.tensor([2.0, 4.0, 2.0, 1.0]))


def get_dynamic_shapes():
    n = Dim("n", min=2, max=256)
    return {"angle": {0: n}, "period": {0: n}}
