"""The seed models are what they claim to be, as far as can be told without compiling them."""

import copy
import importlib.util
import json
from pathlib import Path

import pytest
import torch
from torch.utils import _pytree as pytree

from minimizer.oracle.verdict import SEVERITY

MODELS = Path(__file__).resolve().parent.parent / "corpus" / "models"


def load(slug):
    spec = importlib.util.spec_from_file_location(f"corpus_{slug}", MODELS / f"{slug}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def optional(module, name, default):
    return getattr(module, name)() if hasattr(module, name) else default


SLUGS = sorted(path.stem for path in MODELS.glob("*.py"))


def test_expected_lists_exactly_the_model_files():
    expected = json.loads((MODELS / "expected.json").read_text())
    assert sorted(expected) == SLUGS


def test_expected_names_known_kinds_for_failures_only():
    expected = json.loads((MODELS / "expected.json").read_text())
    for slug, entry in expected.items():
        assert set(entry) == {"expect", "kinds"}, slug
        assert entry["expect"] in {"failure", "none"}, slug
        assert set(entry["kinds"]) <= set(SEVERITY), slug
        assert bool(entry["kinds"]) == (entry["expect"] == "failure"), slug


def test_readme_has_a_row_for_every_model():
    rows = [line for line in (MODELS / "README.md").read_text().splitlines() if line.startswith("| `")]
    assert sorted(row.split("`")[1] for row in rows) == SLUGS


@pytest.mark.parametrize("slug", SLUGS)
def test_model_exports_and_the_program_matches_eager(slug):
    module = load(slug)
    assert module.__doc__, "a model file opens with a docstring"
    model = module.get_model()
    args = module.get_example_inputs()
    kwargs = optional(module, "get_example_kwargs", {})
    assert isinstance(args, tuple)
    assert all(isinstance(key, str) for key in optional(module, "get_inductor_configs", {}))

    with torch.no_grad():
        # Two calls: a model with state must agree in the second one too.
        eager_model = copy.deepcopy(model)
        eager = [eager_model(*copy.deepcopy(args), **copy.deepcopy(kwargs)) for _ in range(2)]
        program = torch.export.export(
            model, args, kwargs, dynamic_shapes=optional(module, "get_dynamic_shapes", None)
        ).module()
        exported = [program(*copy.deepcopy(args), **copy.deepcopy(kwargs)) for _ in range(2)]

    expected, expected_form = pytree.tree_flatten(eager)
    actual, actual_form = pytree.tree_flatten(exported)
    assert actual_form == expected_form
    for left, right in zip(actual, expected, strict=True):
        torch.testing.assert_close(left, right, equal_nan=True)


@pytest.mark.parametrize("slug", SLUGS)
def test_examples_are_the_same_every_time(slug):
    first, second = load(slug), load(slug)
    left = pytree.tree_leaves((first.get_example_inputs(), optional(first, "get_example_kwargs", {})))
    right = pytree.tree_leaves((second.get_example_inputs(), optional(second, "get_example_kwargs", {})))
    for one, other in zip(left, right, strict=True):
        assert torch.equal(one, other)
    state = zip(first.get_model().state_dict().items(), second.get_model().state_dict().items(), strict=True)
    for (name, one), (_, other) in state:
        assert torch.equal(one, other), name
