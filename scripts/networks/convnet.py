"""A residual network of seven blocks with group norm; one activation of seven is a ReLU. About 50 calls."""

import torch
from torch.export import Dim


class Block(torch.nn.Module):
    def __init__(self, channels, activation):
        super().__init__()
        self.wide = torch.nn.Conv2d(channels, channels, 3, padding=1)
        self.norm = torch.nn.GroupNorm(4, channels)
        self.narrow = torch.nn.Conv2d(channels, channels, 1)
        self.activation = activation

    def forward(self, x):
        inside = self.activation(self.norm(self.wide(x)))
        return x + 0.5 * torch.sigmoid(self.narrow(inside))


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        silu, relu = torch.nn.functional.silu, torch.relu
        self.stem = torch.nn.Conv2d(3, 8, 3, padding=1)
        self.blocks = torch.nn.Sequential(*(Block(8, relu if k == 4 else silu) for k in range(7)))
        self.head = torch.nn.Linear(8, 10)

    def forward(self, x):
        x = self.blocks(torch.tanh(self.stem(x)))
        return self.head(x.mean((2, 3)))


def get_model():
    torch.manual_seed(0)
    return Model().eval()


def get_example_inputs():
    torch.manual_seed(1)
    return (torch.randn(3, 3, 10, 10),)


def get_dynamic_shapes():
    return {"x": {0: Dim("batch", min=2, max=32)}}
