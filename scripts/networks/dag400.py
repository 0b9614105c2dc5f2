"""A tangle of some 400 calls drawn at random, pointwise, reducing and multiplying; the 260th is a ReLU."""

import random

import torch
from torch.export import Dim

CALLS, RELU_AT = 400, 260


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(8, 8) * 0.3)

    def forward(self, x):
        drawn = random.Random(7)
        values, calls, marked = [x, torch.tanh(x)], 1, None
        while calls < CALLS:
            last = values[-1 - min(len(values) - 1, drawn.choice([0, 0, 0, 1, 3]))]
            if calls >= RELU_AT and marked is None:
                marked, cost, made = len(values), 1, torch.relu(last)
            else:
                cost, made = self.draw(drawn, last, values)
            values.append(made)
            calls += cost
        # A way past what smooths: an error made at the ReLU is still there in the end.
        return values[-1] + values[-2] + values[marked + 6], values[-4]

    def draw(self, drawn, last, values):
        match drawn.randrange(8):
            case 0:
                return 1, torch.sin(last)
            case 1:
                return 2, torch.sigmoid(last) - 0.5
            case 2:
                return 2, last * 0.9 + 0.02
            case 3:
                return 2, last + 0.5 * drawn.choice(values[-10:])
            case 4:
                return 2, last - last.mean(-1, keepdim=True)
            case 5:
                return 2, torch.cos(last) * last
            case 6:
                return 2, torch.tanh(last @ self.weight)
        return 3, last / (1 + last.abs())


def get_model():
    torch.manual_seed(0)
    return Model().eval()


def get_example_inputs():
    torch.manual_seed(1)
    return (torch.randn(4, 8),)


def get_dynamic_shapes():
    return {"x": {0: Dim("batch", min=2, max=64)}}
