"""Keeps, at each pixel, the larger of the image and its coarse copy."""

import torch
import torch.nn.functional as F
from torch.export import Dim


class Model(torch.nn.Module):
    def forward(self, image):
        coarse = F.interpolate(F.avg_pool2d(image, 2), scale_factor=2, mode="nearest")
        return torch.maximum(image, coarse)


def get_model():
    return Model().eval()


def get_example_inputs():
    return (torch.randn(3, 2, 8, 10, generator=torch.Generator().manual_seed(1)),)


def get_dynamic_shapes():
    return {"image": {0: Dim("batch", min=1, max=16)}}
