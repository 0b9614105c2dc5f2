"""A custom operator that keeps its promises: soft clipping, with a fake function for export."""

import torch
from torch import library
from torch.export import Dim


@library.custom_op("seed_models::soft_clip", mutates_args=())
def soft_clip(x: torch.Tensor, limit: float) -> torch.Tensor:
    return limit * torch.tanh(x / limit)


@soft_clip.register_fake
def _(x, limit):
    return torch.empty_like(x)


class Model(torch.nn.Module):
    def forward(self, x):
        return soft_clip(x + 1.0, 2.0).mean(1)


def get_model():
    return Model().eval()


def get_example_inputs():
    return (torch.randn(4, 6, generator=torch.Generator().manual_seed(1)),)


def get_dynamic_shapes():
    return {"x": {0: Dim("batch", min=2, max=64)}}
