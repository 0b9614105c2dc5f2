"""Mixture of experts: every token goes to the two experts with the best scores, by their softmax weights."""

import torch
from torch.export import Dim


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.score = torch.nn.Linear(8, 5)
        self.experts = torch.nn.Parameter(torch.randn(5, 8, 8) / 8**0.5)

    def forward(self, tokens):
        best, chosen = self.score(tokens).topk(2, dim=1)
        weight = torch.zeros(tokens.shape[0], 5).scatter_add(1, chosen, best.softmax(1))
        return torch.einsum("te,eij,tj->ti", weight, self.experts, tokens)


def get_model():
    torch.manual_seed(0)
    return Model().eval()


def get_example_inputs():
    return (torch.randn(6, 8, generator=torch.Generator().manual_seed(1)),)


def get_dynamic_shapes():
    return {"tokens": {0: Dim("tokens", min=2, max=64)}}
