"""A gated residual block compiled with Inductor's own injected ReLU bug of kind accuracy."""

import torch
from torch.export import Dim


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.LayerNorm(8)
        self.value = torch.nn.Linear(8, 8)
        self.gate = torch.nn.Linear(8, 8)

    def forward(self, x):
        normed = self.norm(x)
        return x + torch.relu(self.value(normed)) * torch.sigmoid(self.gate(normed))


def get_model():
    torch.manual_seed(0)
    return Model().eval()


def get_example_inputs():
    return (torch.randn(4, 8, generator=torch.Generator().manual_seed(1)),)


def get_dynamic_shapes():
    return {"x": {0: Dim("batch", min=2, max=64)}}


def get_inductor_configs():
    return {"cpp.inject_relu_bug_TESTING_ONLY": "accuracy"}
