"""Normalises a table and picks one element of every row; positions are kept in range."""

import torch
from torch.export import Dim


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.LayerNorm(10)

    def forward(self, table, position):
        position = position.clamp(0, 9)
        return torch.gather(self.norm(table), 1, position.unsqueeze(1)).squeeze(1)


def get_model():
    torch.manual_seed(0)
    return Model().eval()


def get_example_inputs():
    return (torch.randn(5, 10, generator=torch.Generator().manual_seed(1)), torch.tensor([0, 9, 3, 3, 7]))


def get_dynamic_shapes():
    rows = Dim("rows", min=2, max=64)
    return {"table": {0: rows}, "position": {0: rows}}
