"""Mean vector of each group of a ragged batch: all rows in one table, each with the number of its group."""

import torch
from torch.export import Dim


class Model(torch.nn.Module):
    def forward(self, rows, group):
        group = group.clamp(0, 7)
        total = torch.zeros(8, rows.shape[1]).index_add(0, group, rows)
        count = torch.zeros(8).index_add(0, group, torch.ones_like(group, dtype=torch.float32))
        return total / count.clamp(min=1).unsqueeze(1)


def get_model():
    return Model().eval()


def get_example_inputs():
    rows = torch.randn(6, 5, generator=torch.Generator().manual_seed(1))
    return (rows, torch.tensor([0, 0, 3, 3, 3, 7]))


def get_dynamic_shapes():
    rows = Dim("rows", min=2, max=64)
    return {"rows": {0: rows}, "group": {0: rows}}
