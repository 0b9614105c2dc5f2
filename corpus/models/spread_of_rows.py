"""Centre and spread of each row in percent; a row may be empty."""

import torch
from torch.export import Dim


class Model(torch.nn.Module):
    def forward(self, samples):
        spread, centre = torch.std_mean(samples, dim=1, correction=0)
        return centre * 100.0, spread * 100.0


def get_model():
    return Model().eval()


def get_example_inputs():
    return (torch.randn(3, 6, generator=torch.Generator().manual_seed(1)),)


def get_dynamic_shapes():
    return {"samples": {1: Dim("taken", min=0, max=64)}}
