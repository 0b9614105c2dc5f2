"""Layouts as descriptions: strides as torch itself lays such tensors out, simplest first."""

import pytest
import torch

from strategies.layouts import KINDS, Layout, arrangements, telling_layouts


def kinds(shape):
    return [layout.kind for layout in telling_layouts(shape)]


def strides(kind, shape):
    return next(layout for layout in telling_layouts(shape) if layout.kind == kind).strides(shape)


@pytest.mark.parametrize(
    ("kind", "shape", "tensor"),
    [
        ("transposed", (3, 5), torch.empty(5, 3).t()),
        ("transposed", (2, 3, 5), torch.empty(2, 5, 3).mT),
        ("channels last", (2, 3, 5, 7), torch.empty(2, 3, 5, 7, memory_format=torch.channels_last)),
        ("channels last", (2, 3, 5, 7, 4), torch.empty(2, 3, 5, 7, 4, memory_format=torch.channels_last_3d)),
        ("sliced", (3, 5), torch.empty(3, 10)[:, ::2]),
        ("sliced", (5,), torch.empty(10)[::2]),
        ("rows", (3, 5), torch.empty(6, 5)[::2]),
        ("rows", (3, 5, 2), torch.empty(6, 5, 2)[::2]),
        ("reversed", (2, 3, 5), torch.empty(5, 3, 2).permute(2, 1, 0)),
        ("expanded", (3, 5), torch.empty(1, 5).expand(3, 5)),
        ("expanded", (3,), torch.empty(1).expand(3)),
    ],
)
def test_strides_are_those_of_such_a_tensor(kind, shape, tensor):
    assert tensor.shape == shape
    assert strides(kind, shape) == tensor.stride()


def test_what_a_tensor_cannot_have_is_not_offered():
    assert kinds(()) == []
    assert kinds((4,)) == ["sliced", "expanded", "shifted"]
    assert "transposed" not in kinds((1, 4))
    assert "odd ones" in kinds((1, 4))
    assert "odd ones" not in kinds((2, 4))


def test_odd_strides_are_given_to_dims_of_size_1_only():
    assert strides("odd ones", (1, 4, 1)) == (7, 1, 7)


def test_channels_last_comes_first_where_it_can_be():
    assert kinds((2, 3, 5, 7))[:2] == ["channels last", "transposed"]
    assert set(kinds((2, 3, 5, 7))) <= set(KINDS)


def test_empty_dims_have_strides_too():
    assert strides("sliced", (0, 5)) == (10, 2)


def test_all_inputs_together_before_each_alone():
    moves = [
        [layout and layout.kind for layout in move]
        for move in arrangements([(4, 4), (3,), (2, 5)], ["transposed", "sliced"])
    ]
    assert moves[:2] == [["transposed", None, "transposed"], ["sliced"] * 3]
    assert moves[2:4] == [["transposed", None, None], [None, None, "transposed"]]
    assert len(moves) == 7
    assert list(arrangements([()])) == []


@pytest.mark.parametrize(
    ("change", "word"), [({"kind": "diagonal"}, "unknown kind"), ({"order": (0, 0)}, "does not name")]
)
def test_what_is_wrong_is_said(change, word):
    with pytest.raises(ValueError, match=word):
        Layout(**{"kind": "sliced", "order": (0, 1), "steps": (1, 2), **change})
