"""Two layers of a transformer written out by hand, with one ReLU in the second. About 100 calls."""

import math

import torch
from torch.export import Dim


class Attention(torch.nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.each = heads, width // heads
        self.query, self.key, self.value, self.out = (torch.nn.Linear(width, width) for _ in range(4))

    def forward(self, x, bias):
        batch, length, width = x.shape
        query, key, value = (
            layer(x).view(batch, length, self.heads, self.each).transpose(1, 2)
            for layer in (self.query, self.key, self.value)
        )
        scores = query @ key.transpose(-2, -1) / math.sqrt(self.each) + bias
        weights = torch.exp(scores - scores.amax(-1, keepdim=True))
        weights = weights / weights.sum(-1, keepdim=True)
        return self.out((weights @ value).transpose(1, 2).reshape(batch, length, width))


class Norm(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.scale, self.shift = torch.nn.Parameter(torch.ones(width)), torch.nn.Parameter(torch.zeros(width))

    def forward(self, x):
        centred = x - x.mean(-1, keepdim=True)
        return centred * torch.rsqrt(centred.pow(2).mean(-1, keepdim=True) + 1e-5) * self.scale + self.shift


class Layer(torch.nn.Module):
    def __init__(self, width, heads, activation):
        super().__init__()
        self.attention, self.activation = Attention(width, heads), activation
        self.before, self.between = Norm(width), Norm(width)
        self.up, self.down = torch.nn.Linear(width, 2 * width), torch.nn.Linear(2 * width, width)

    def forward(self, x, bias):
        x = x + self.attention(self.before(x), bias)
        return x + self.down(self.activation(self.up(self.between(x))))


class Model(torch.nn.Module):
    def __init__(self, width=16, heads=2):
        super().__init__()
        self.layers = torch.nn.ModuleList(Layer(width, heads, f) for f in (torch.tanh, torch.relu))
        self.norm, self.places = Norm(width), torch.nn.Parameter(torch.randn(6, width) * 0.1)

    def forward(self, x, mask):
        bias = torch.where(mask[:, None, None, :], 0.0, -1e4)
        x = x + self.places
        for layer in self.layers:
            x = layer(x, bias)
        x = self.norm(x)
        return x.mean(1), torch.sigmoid(x)


def get_model():
    torch.manual_seed(0)
    return Model().eval()


def get_example_inputs():
    torch.manual_seed(1)
    mask = torch.ones(3, 6, dtype=torch.bool)
    mask[1, 4:] = False
    return torch.randn(3, 6, 16), mask


def get_dynamic_shapes():
    batch = Dim("batch", min=2, max=32)
    return {"x": {0: batch}, "mask": {0: batch}}
