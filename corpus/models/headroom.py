"""How much louder may each channel get? The reciprocal of a level kept between 0 and 6."""

import torch
import torch.nn.functional as F
from torch.export import Dim


class Model(torch.nn.Module):
    def forward(self, level):
        return torch.reciprocal(F.relu6(level))


def get_model():
    return Model().eval()


def get_example_inputs():
    return (torch.tensor([[0.5, 2.0, 4.0], [8.0, 1.0, 0.25]]),)


def get_dynamic_shapes():
    return {"level": {0: Dim("channels", min=2, max=64)}}
