"""Cross entropy of probabilities that the caller promises to be between 0 and 1."""

import torch
import torch.nn.functional as F
from torch.export import Dim


class Model(torch.nn.Module):
    def forward(self, probability, target):
        return F.binary_cross_entropy(probability, target, reduction="none").sum(1)


def get_model():
    return Model().eval()


def get_example_inputs():
    return (torch.tensor([[0.25, 0.5], [0.75, 0.125]]), torch.tensor([[0.0, 1.0], [1.0, 0.0]]))


def get_dynamic_shapes():
    n = Dim("n", min=2, max=64)
    return {"probability": {0: n}, "target": {0: n}}
