"""Control flow: one of two affine maps, chosen by the sign of the first element."""

import torch
from torch.export import Dim


def rising(x):
    return x * 2.0 + 1.0


def falling(x):
    return 3.0 - x


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.cond(x[0, 0] > 0, rising, falling, (x,))


def get_model():
    return Model().eval()


def get_example_inputs():
    return (torch.randn(4, 6, generator=torch.Generator().manual_seed(1)),)


def get_dynamic_shapes():
    return {"x": {0: Dim("batch", min=2, max=64)}}
