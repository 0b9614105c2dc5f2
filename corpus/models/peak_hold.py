"""A peak meter: the peak falls by half at every call unless the input is louder."""

import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("peak", torch.ones(1))

    def forward(self, level):
        self.peak.copy_(torch.maximum(self.peak * 0.5, level.abs().amax()))
        return level / self.peak


def get_model():
    return Model().eval()


def get_example_inputs():
    return (torch.tensor([0.25, -4.0, 0.5, 3.0]),)
