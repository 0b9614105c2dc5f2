"""A variant applied to a model file: strides and dtypes of what is exported, and of every fresh model."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from minimizer.targets.model_file import ModelFile, Unusable
from minimizer.targets.variants import apply_variant
from minimizer.variant import AS_WRITTEN, Variant
from strategies.layouts import telling_layouts


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)
        self.register_buffer("counts", torch.zeros(4, dtype=torch.int64))

    def forward(self, x, index, scale=1.0):
        return self.linear(x)[index] * scale


def target():
    x = torch.arange(12.0).reshape(3, 4)
    return ModelFile(Path("model.py"), None, Model, (x, torch.tensor([0, 1])), {"scale": 2.0})


def layouts(kind):
    (found,) = (layout for layout in telling_layouts((3, 4)) if layout.kind == kind)
    return (found, None)


@pytest.mark.parametrize("kind", ["transposed", "sliced", "rows", "expanded", "shifted"])
def test_examples_are_laid_out_and_keep_their_elements(kind):
    changed, plain = target(), target()
    apply_variant(changed, Model(), Variant(layouts(kind)))
    (x, index), (was, _) = changed.args, plain.args
    assert x.stride() == layouts(kind)[0].strides((3, 4))
    assert x.storage_offset() == (kind == "shifted")
    assert torch.equal(x, was[:1].expand(3, 4) if kind == "expanded" else was)
    assert index.is_contiguous()
    assert changed.kwargs == {"scale": 2.0}


def test_dtypes_change_inputs_state_and_every_fresh_model():
    changed, model = target(), Model()
    apply_variant(changed, model, Variant(dtypes=(("float32", "float16"),)))
    assert [t.dtype for t in changed.args] == [torch.float16, torch.int64]
    for one in (model, changed.get_model()):
        assert one.linear.weight.dtype == torch.float16
        assert one.counts.dtype == torch.int64


def test_integer_buffers_keep_their_dtype():
    changed, model = target(), Model()
    apply_variant(changed, model, Variant(dtypes=(("int64", "int32"),)))
    assert [t.dtype for t in changed.args] == [torch.float32, torch.int32]
    assert model.counts.dtype == torch.int64


def test_a_tensor_that_is_given_twice_stays_one():
    x = torch.zeros(3, 4)
    twice = replace(target(), args=(x, x))
    apply_variant(twice, Model(), Variant((layouts("transposed")[0], None)))
    assert twice.args[0] is twice.args[1]


def test_as_written_changes_nothing():
    plain = target()
    given = plain.args
    apply_variant(plain, Model(), AS_WRITTEN)
    assert plain.args is given


def test_what_is_exported_already_is_refused():
    exported = replace(target(), exported=lambda: None)
    with pytest.raises(Unusable, match="exported already"):
        apply_variant(exported, Model(), Variant(layouts("sliced")))
    apply_variant(exported, Model(), Variant(config=(("freezing", True),)))
