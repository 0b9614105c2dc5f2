"""A perceptron of three layers with one ReLU among other activations; the batch is dynamic."""

import torch
from torch.export import Dim


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(12, 24), torch.nn.Linear(24, 24)
        self.last = torch.nn.Linear(24, 6)

    def forward(self, x):
        x = torch.sin(self.first(x)) + 0.25
        x = torch.relu(self.second(x) * 0.5)
        return torch.log_softmax(torch.tanh(self.last(x)), -1)


def get_model():
    torch.manual_seed(0)
    return Model().eval()


def get_example_inputs():
    torch.manual_seed(1)
    return (torch.randn(5, 12),)


def get_dynamic_shapes():
    return {"x": {0: Dim("batch", min=2, max=64)}}
