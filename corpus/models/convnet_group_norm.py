"""Small image classifier: strided convolutions with group norm, then a mean over the image."""

import torch
from torch.export import Dim


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = torch.nn.Conv2d(3, 8, 3, padding=1)
        self.stem_norm = torch.nn.GroupNorm(2, 8)
        self.down = torch.nn.Conv2d(8, 16, 3, stride=2, padding=1)
        self.down_norm = torch.nn.GroupNorm(4, 16)
        self.head = torch.nn.Linear(16, 4)

    def forward(self, image):
        x = torch.relu(self.stem_norm(self.stem(image)))
        x = torch.relu(self.down_norm(self.down(x)))
        return self.head(x.mean((2, 3)))


def get_model():
    torch.manual_seed(0)
    return Model().eval()


def get_example_inputs():
    return (torch.randn(2, 3, 12, 12, generator=torch.Generator().manual_seed(1)),)


def get_dynamic_shapes():
    return {"image": {0: Dim("batch", min=1, max=16)}}
