"""Rotary position encoding: pairs of features as complex numbers, turned by an angle for each position."""

import torch
from torch.export import Dim


class Model(torch.nn.Module):
    def forward(self, x):
        position = torch.arange(x.shape[0], dtype=torch.float32)
        angle = torch.outer(position, 100.0 ** -torch.linspace(0, 1, 4))
        pairs = torch.view_as_complex(x.reshape(-1, 4, 2))
        return torch.view_as_real(pairs * torch.polar(torch.ones_like(angle), angle)).flatten(1)


def get_model():
    return Model().eval()


def get_example_inputs():
    return (torch.randn(5, 8, generator=torch.Generator().manual_seed(1)),)


def get_dynamic_shapes():
    return {"x": {0: Dim("length", min=2, max=64)}}
