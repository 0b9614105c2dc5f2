"""One transformer encoder block; batch and length both vary."""

import torch
import torch.nn.functional as F
from torch.export import Dim


class Model(torch.nn.Module):
    def __init__(self, width=16, heads=2):
        super().__init__()
        self.heads = heads
        self.before_attention = torch.nn.LayerNorm(width)
        self.qkv = torch.nn.Linear(width, 3 * width)
        self.out = torch.nn.Linear(width, width)
        self.before_feed_forward = torch.nn.LayerNorm(width)
        self.widen = torch.nn.Linear(width, 4 * width)
        self.narrow = torch.nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        qkv = self.qkv(self.before_attention(x)).view(batch, length, 3, self.heads, width // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        attended = F.scaled_dot_product_attention(q, k, v)
        x = x + self.out(attended.transpose(1, 2).reshape(batch, length, width))
        return x + self.narrow(torch.relu(self.widen(self.before_feed_forward(x))))


def get_model():
    torch.manual_seed(0)
    return Model().eval()


def get_example_inputs():
    return (torch.randn(2, 7, 16, generator=torch.Generator().manual_seed(1)),)


def get_dynamic_shapes():
    return {"x": {0: Dim("batch", min=1, max=8), 1: Dim("length", min=1, max=32)}}
