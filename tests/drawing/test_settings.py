"""The table of Inductor options, and other dtypes, against the torch that is installed."""

from operator import attrgetter

import pytest
from torch._inductor import config
from torch._inductor.fuzzer import MODULE_DEFAULTS

from minimizer.targets.options import problem_of
from strategies.dtypes import FLOATS, INTEGERS, dtype_maps, wanted
from strategies.settings import OPTIONS, settings


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.key)
def test_every_option_is_known_and_every_value_legal_and_not_the_default(option):
    for value in option.values:
        assert problem_of({option.key: value}) == ""
        assert attrgetter(option.key)(config) != value
    assert option.key not in MODULE_DEFAULTS["torch._inductor.config"] or option.key.startswith("max_auto")


def test_each_option_stands_once():
    keys = [option.key for option in OPTIONS]
    assert len(set(keys)) == len(keys)


def test_levels():
    assert list(settings("default")) == []
    common, wide = list(settings("common")), list(settings("wide"))
    assert common[0] == (("freezing", True),)
    assert set(common) < set(wide)
    assert all(len(one) == 1 for one in wide)
    with pytest.raises(ValueError, match="unknown level"):
        list(settings("all"))


def test_what_is_set_already_is_left_alone():
    assert (("freezing", True),) not in list(settings("wide", taken=(("freezing", False),)))


def test_dtypes_by_name():
    assert wanted("default") == wanted("") == ()
    assert wanted("wide") == (*FLOATS, *INTEGERS)
    assert wanted("int8, float16") == ("int8", "float16")
    with pytest.raises(ValueError, match="'float8' is no dtype"):
        wanted("float8")


def test_floats_change_together_with_the_parameters():
    maps = list(dtype_maps(["float32", "float64", "int64"], ["bfloat16"], ("float32", "int8")))
    assert maps == [
        (("float64", "float32"), ("bfloat16", "float32")),
        (("int64", "int8"),),
    ]


def test_integer_parameters_stay():
    assert list(dtype_maps(["float32"], ["int64"], ("int8",))) == []


def test_a_dtype_that_is_there_already_is_no_change():
    assert list(dtype_maps(["float32"], ["float32"], ("float32",))) == []
