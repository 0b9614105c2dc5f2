"""A dict of tensors and a list in, keyword arguments beside them, a nested container out."""

import torch
from torch.export import Dim


class Model(torch.nn.Module):
    def forward(self, signals, offsets, *, gain, window):
        left = signals["left"] * gain + offsets[0]
        right = signals["right"] * gain + offsets[1]
        return {"stereo": (left * window, right * window), "middle": [(left + right) / 2]}


def get_model():
    return Model().eval()


def get_example_inputs():
    draw = torch.Generator().manual_seed(1)
    signals = {"left": torch.randn(4, 6, generator=draw), "right": torch.randn(4, 6, generator=draw)}
    return (signals, [torch.tensor(0.5), torch.tensor(-0.25)])


def get_example_kwargs():
    return {"gain": torch.tensor(1.5), "window": torch.linspace(0.0, 1.0, 6)}


def get_dynamic_shapes():
    n = Dim("n", min=2, max=64)
    return {
        "signals": {"left": {0: n}, "right": {0: n}},
        "offsets": [None, None],
        "gain": None,
        "window": None,
    }
