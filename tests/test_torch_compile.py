"""The other compile path: right where Inductor is, and its errors told from those of compiled code."""

import pytest
import torch

from minimizer.oracle.stages import StageError
from minimizer.oracle.torch_compile import compile_lazily

pytestmark = pytest.mark.compiles

BUG = "cpp.inject_relu_bug_TESTING_ONLY"


class Model(torch.nn.Module):
    def forward(self, x, shift):
        return [torch.relu(x), {"sum": x.sum(0) + shift}]


def compiled(**config):
    def nest(flat):
        return (flat[0],), {"shift": flat[1]}

    return compile_lazily(Model(), nest, config, dynamic=True)


def test_outputs_are_flat_and_right_at_every_size():
    call = compiled()
    for size in (4, 1, 0, 17):
        x = torch.randn(size, 3)
        relu, total = call([x, 1.5])
        torch.testing.assert_close(relu, torch.relu(x))
        torch.testing.assert_close(total, x.sum(0) + 1.5)


def test_options_reach_inductor():
    (relu, _) = compiled(**{BUG: "accuracy"})([torch.ones(4, 3), 0.0])
    assert not torch.equal(relu, torch.ones(4, 3))


def test_what_the_compiler_raises_is_a_stage_of_its_own():
    with pytest.raises(StageError) as raised:
        compiled(**{BUG: "compile_error"})([torch.ones(4, 3), 0.0])
    assert (raised.value.failure.kind, raised.value.failure.stage) == ("cxx_error", "cxx")
