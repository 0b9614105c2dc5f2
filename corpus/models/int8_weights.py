"""A linear layer whose weights are stored as int8 with a scale for each output channel."""

import torch
from torch.export import Dim


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        weight = torch.randn(5, 12) / 12**0.5
        scale = weight.abs().amax(1, keepdim=True) / 127
        self.register_buffer("scale", scale)
        self.register_buffer("quantised", torch.round(weight / scale).to(torch.int8))

    def forward(self, x):
        return torch.nn.functional.linear(x, self.quantised.to(x.dtype) * self.scale)


def get_model():
    torch.manual_seed(0)
    return Model().eval()


def get_example_inputs():
    return (torch.randn(3, 12, generator=torch.Generator().manual_seed(1)),)


def get_dynamic_shapes():
    return {"x": {0: Dim("batch", min=2, max=64)}}
