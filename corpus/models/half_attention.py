"""Causal attention in half precision, dynamic batch and length."""

import torch
from torch.export import Dim


class Model(torch.nn.Module):
    def forward(self, query, key, value):
        return torch.nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)


def get_model():
    return Model().eval()


def get_example_inputs():
    generator = torch.Generator().manual_seed(1)
    return tuple(torch.randn(2, 3, 7, 8, generator=generator).half() for _ in range(3))


def get_dynamic_shapes():
    dims = {0: Dim("batch", min=2, max=8), 2: Dim("length", min=2, max=64)}
    return {"query": dims, "key": dims, "value": dims}
