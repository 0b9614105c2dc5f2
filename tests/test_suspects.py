"""What a failure itself points at, and which level shows it."""

import pytest
from judges import CASE, CRASH, NAN, WRONG, Bench

from minimizer.oracle.verdict import PASS, Failure, Verdict
from minimizer.prosecutor import Prosecutor
from minimizer.suspects import hints, kernel_words, starting_point


def shown(bench, level, failure=WRONG, repeats=1):
    """How the whole case shows the failure at a level; None when it does not."""
    found = starting_point(Prosecutor(bench, level, failure.signature, repeats), CASE, failure, {})
    assert found is None or found[0] == CASE
    return found and found[1]


def test_a_level_shows_the_failure_or_does_not():
    assert shown(Bench(jit=WRONG), "jit") == WRONG.signature
    assert shown(Bench(jit=PASS), "jit") is None
    assert shown(Bench(jit=CRASH), "jit") is None
    assert shown(Bench(jit=Verdict("invalid")), "jit") is None


def test_a_proxy_judges_by_its_own_words():
    ours = Failure("runtime_error", "run", "index out of bounds", "RuntimeError")
    proxy = Failure("runtime_error", "run", "assert failed in kernel", "RuntimeError")
    assert shown(Bench(jit=proxy), "jit", ours) == proxy.signature
    assert shown(Bench(full=proxy), "full", ours) is None


def test_a_compiler_s_words_are_the_same_at_every_level():
    ours = Failure("compile_error", "lower", "no kernel", "E")
    other = Failure("compile_error", "lower", "no layout", "E")
    assert shown(Bench(lower=ours), "lower", ours) == ours.signature
    assert shown(Bench(lower=other), "lower", ours) is None


def test_wrong_values_may_turn_out_ordinary():
    assert shown(Bench(full=WRONG), "full", NAN) == WRONG.signature
    assert shown(Bench(full=NAN), "full", WRONG) is None


def test_a_flaky_failure_is_asked_for_again():
    assert shown(Bench(jit=[PASS, PASS, WRONG]), "jit", repeats=3) == WRONG.signature
    assert shown(Bench(jit=[PASS, PASS, WRONG]), "jit", repeats=2) is None


def test_the_operator_that_the_error_names_comes_first():
    failure = Failure("compile_error", "lower", "KeyError", op="aten.relu.default")
    assert list(hints(CASE, failure)) == [{"v0"}, {"v3"}]
    assert list(hints(CASE, Failure("compile_error", "lower", "KeyError"))) == []
    assert list(hints(CASE, Failure("compile_error", "lower", "KeyError", op="aten.mm.default"))) == []


def test_the_calls_in_a_kernel_s_name_are_hints():
    failure = Failure("cxx_error", "cxx", "in function 'cpp_fused_softmax_sum_3'")
    assert list(hints(CASE, failure)) == [{"v1"}, {"v2"}, {"v1", "v2"}]


def test_words_of_kernel_names():
    failure = Failure(
        "crash", "run", "triton_poi_fused_add_relu_0 and cpp_fused_mean_2", detail="cpp_fused_0"
    )
    assert {"add", "relu", "mean"} <= kernel_words(failure)
    assert kernel_words(Failure("crash", "run", "no kernel")) == frozenset()


@pytest.mark.parametrize(
    ("kernel", "operator"),
    [
        ("cpp_fused__softmax_add_0", "_softmax"),
        ("cpp_fused_add_native_layer_norm_1", "native_layer_norm"),
        ("triton_per_fused_max_pool2d_with_indices_relu_2", "max_pool2d_with_indices"),
    ],
)
def test_operators_of_several_words_are_found_in_kernel_names(kernel, operator):
    assert operator in kernel_words(Failure("crash", "run", kernel))
