"""Mean of token embeddings, then a linear classifier."""

import torch
from torch.export import Dim


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.bag = torch.nn.EmbeddingBag(20, 8, mode="mean")
        self.head = torch.nn.Linear(8, 3)

    def forward(self, tokens):
        return self.head(self.bag(tokens.clamp(0, 19)))


def get_model():
    torch.manual_seed(0)
    return Model().eval()


def get_example_inputs():
    return (torch.tensor([[1, 4, 4, 19], [0, 7, 2, 3], [5, 5, 5, 5]]),)


def get_dynamic_shapes():
    return {"tokens": {0: Dim("batch", min=1, max=64)}}
