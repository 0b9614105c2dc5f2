"""The search against judges that fail on purpose: what is found, what is kept, when it ends."""

from dataclasses import replace

import pytest

from minimizer import fuzz, input_space
from minimizer.case import Value
from minimizer.fuzz import mild, search
from minimizer.input_space import InputSpace, mine_constants
from minimizer.oracle.verdict import PASS, Failure, Verdict
from minimizer.program import Input, Node, Program, Ref, Symbol, TensorMeta
from strategies import Draw
from strategies.values import Fill

LOST = Verdict("fail", Failure("lost_error", "run", exception="IndexError"))
WRONG = Verdict("fail", Failure("wrong_value", "run", flavour="values"))
STRIDE = Verdict("fail", Failure("wrong_metadata", "run", flavour="stride"))
CRASH = Verdict("fail", Failure("crash", "run", exception="SIGSEGV"))
INVALID = Verdict("invalid")


def vector(*symbols, size="n", dtype="float32", stride=(1,), nodes=()):
    symbols = symbols or (Symbol("n", 0, 64, 8),)
    return InputSpace(Program((Input("x", TensorMeta(dtype, (size,), stride)),), nodes, (), symbols=symbols))


SPACE = vector()
EXAMPLES = (Value("float32", (8,), Fill("normal")),)


def one_at_a_time(judge):
    return lambda batch: [judge(*batch[0])]


def run(judge, space=SPACE, *, seed=0, most=2000, stateful=False, **ends):
    return search(space, one_at_a_time(judge), EXAMPLES, seed=seed, stateful=stateful, most=most, **ends)


def positive(values):
    return values[0].data.kind in ("ones", "all_positive", "ramp") or values[0].data.low > 0


def test_examples_come_first_and_are_called_twice():
    seen = []

    def judge(*calls):
        seen.append(calls)
        return PASS

    report = run(judge, most=3)
    assert seen[0] == (EXAMPLES, EXAMPLES)
    assert [len(calls) for calls in seen[1:]] == [1, 1]
    assert report.tried == 3
    assert report.finding is None


def test_why_most_inputs_are_refused_is_told():
    def judge(values, *more):
        size = values[0].shape[0]
        return (
            Verdict("invalid", reason=f"eager raises IndexError: index {size} is too much") if size else PASS
        )

    report = run(judge, most=50)
    assert report.hollow.startswith(
        f"{report.invalid} of 50 inputs told nothing: eager raises IndexError: index #"
    )
    assert run(lambda *calls: PASS, most=50).hollow == ""


def test_a_failing_example_ends_the_search():
    report = run(lambda *calls: WRONG)
    assert (report.tried, report.finding.values, report.finding.earlier) == (1, EXAMPLES, (EXAMPLES,))


def test_a_large_enough_positive_input_is_found():
    def judge(values, *more):
        return WRONG if values[0].shape[0] >= 16 and positive(values) else PASS

    report = run(judge)
    assert report.finding.failure == WRONG.failure
    assert report.finding.values[0].shape[0] >= 16
    assert report.tried <= 200
    assert report.also == {}


def test_what_random_draws_find_is_shrunk():
    opening = {space_values for draw in SPACE.opening() for space_values in SPACE.values(draw)}

    def judge(values, *more):
        return WRONG if values[0].shape[0] >= 19 and values[0] not in opening else PASS

    report = run(judge, most=5000)
    assert report.finding.values[0].shape[0] <= 21
    assert report.finding.failure == WRONG.failure


def test_a_lost_error_is_kept_and_the_search_goes_on():
    def judge(values, *more):
        size = values[0].shape[0]
        return LOST if size == 0 else CRASH if size == 33 else PASS

    report = run(judge)
    assert report.finding.failure == CRASH.failure
    assert [f.failure for f in report.also.values()] == [LOST.failure]


def test_a_lost_error_alone_is_the_finding():
    report = run(lambda values, *more: LOST if values[0].shape[0] == 0 else PASS, most=600)
    assert report.finding.failure == LOST.failure
    assert report.tried == 600


def test_a_mild_finding_gives_patience(monkeypatch):
    monkeypatch.setattr(fuzz, "PATIENCE", 30)
    report = run(lambda values, *more: STRIDE if values[0].shape[0] == 0 else PASS)
    assert report.finding.mild
    assert report.tried == report.finding.tried + 30


def test_settling_ends_the_search_once_there_is_something():
    first = run(lambda values, *more: LOST if values[0].shape[0] == 2 else PASS, settle=lambda: True)
    assert first.tried == first.finding.tried


def test_giving_up_ends_the_search():
    tried = []

    def judge(values, *more):
        tried.append(values)
        return PASS

    assert run(judge, give_up=lambda: len(tried) >= 7).tried == 7


def test_the_worst_finding_comes_first():
    verdicts = {2: LOST, 64: STRIDE, 7: Verdict("fail", WRONG.failure, special=True)}
    report = run(lambda values, *more: verdicts.get(values[0].shape[0], PASS), most=600)
    assert report.finding.failure == WRONG.failure
    assert {f.failure.kind for f in report.also.values()} == {"lost_error", "wrong_metadata"}


def test_ordinary_numbers_replace_the_finding_on_special_ones():
    def judge(values, *more):
        size = values[0].shape[0]
        return Verdict("fail", WRONG.failure, special=size == 2) if size in (2, 33) else PASS

    report = run(judge)
    assert report.finding.values[0].shape == (33,)
    assert not report.finding.mild


def test_invalid_inputs_are_counted():
    report = run(lambda values, *more: INVALID if values[0].shape[0] < 4 else PASS, most=50)
    assert 0 < report.invalid < 50


def test_a_seed_gives_the_same_inputs():
    def inputs(seed):
        seen = []

        def judge(values, *more):
            seen.append(values)
            return PASS

        run(judge, seed=seed, most=700)
        return seen

    one = inputs(1)
    assert one == inputs(1)
    assert one != inputs(2)


def test_a_search_with_nothing_to_draw_ends_by_itself():
    report = run(lambda values, *more: PASS, InputSpace(Program((), (), ())))
    assert 2 <= report.tried <= 3


@pytest.mark.parametrize(
    ("verdict", "answer"),
    [(PASS, True), (LOST, True), (STRIDE, True), (WRONG, False), (CRASH, False)],
    ids=["pass", "lost error", "stride", "wrong value", "crash"],
)
def test_what_is_mild(verdict, answer):
    assert mild(verdict) is answer


def test_derived_sizes_and_strides():
    space = vector(size="2*n", stride=(3,))
    value = space.values(Draw((("n", 5),), (Fill("ones"),)))[0]
    assert (value.shape, value.stride) == ((10,), (3,))
    assert vector(size="n // 2").values(Draw((("n", 5),), (Fill("ones"),)))[0].shape == (2,)


def test_symbols_that_are_not_drawn_stay_at_their_hint():
    assert SPACE.values(Draw((), (Fill("ones"),)))[0].shape == (8,)


def test_contiguous_values_say_nothing_of_strides():
    assert SPACE.values(Draw((("n", 5),), (Fill("ones"),)))[0].stride is None


@pytest.mark.parametrize(
    ("size", "n", "fits"),
    [
        ("n", 64, True),
        ("n - 5", 4, False),
        ("10 // n", 0, False),
        ("n / 2", 3, False),
        ("n / 2", 4, True),
        ("m", 4, False),
        ("n", 2**26, True),
        ("n", 2**26 + 1, False),
    ],
)
def test_sizes_that_fit(size, n, fits):
    assert vector(size=size).fits({"n": n}) is fits


def test_memory_counts_all_inputs():
    meta = TensorMeta("int8", ("n",), (1,))
    program = Program((Input("x", meta), Input("y", meta)), (), (), symbols=(Symbol("n", 0, None, 8),))
    space = InputSpace(program)
    assert space.fits({"n": input_space.MEMORY // 2})
    assert not space.fits({"n": input_space.MEMORY // 2 + 1})


def test_an_index_is_bounded_by_what_it_indexes():
    index = Input("i", TensorMeta("int64", ("n",), (1,)))
    table = Input("x", TensorMeta("float32", ("n", 4), (4, 1)))
    node = Node("y", "aten.embedding.default", (Ref("x"), Ref("i")))
    space = InputSpace(Program((table, index), (node,), (), symbols=(Symbol("n", 0, 64, 8),)))
    values = space.values(Draw((("n", 5),), (Fill("ones"), Fill("zeros"))))
    assert [value.bound for value in values] == [None, 5]
    assert {draw.fills[1].kind for draw in space.opening()} >= {"index_random", "index_last", "edge_out"}


CODE = """
for(int64_t x0=static_cast<int64_t>(0L); x0<static_cast<int64_t>(640L); x0+=static_cast<int64_t>(16L))
    if(C10_LIKELY(x0 >= static_cast<int64_t>(0) && x0 < static_cast<int64_t>(624L)))
    for(int64_t x1=0L; x1<ks0; x1+=8L) { auto tmp0 = in_ptr0[x1 % 48L]; auto tmp1 = x0 / 7; }
    for(int64_t x2=0L; x2<100000L; x2+=1L) { auto tmp2 = static_cast<float>(3.5); x3 += 16L; }
"""


def test_constants_of_generated_code():
    mined = mine_constants(CODE)
    assert mined[0] == 16
    assert set(mined) == {640, 16, 624, 8, 48, 7}
    assert mine_constants("") == ()
    assert len(mine_constants(" ".join(f"x < {k};" for k in range(100)))) == 8


def test_an_error_that_grows_with_size_is_climbed():
    """A drift of rounding: nothing tells but the error ratio; one draw in some ten thousand is over it."""

    def judge(values, *more):
        value = values[0]
        ratio = value.shape[0] / 3990 * value.data.seed / 990
        return replace(WRONG if ratio > 1 else PASS, error_ratio=ratio)

    space = vector(Symbol("n", 0, 3999, 8))
    climbed = [run(judge, space, seed=seed, most=3000).finding for seed in range(5)]
    assert all(climbed)


def test_exact_programs_are_not_climbed(monkeypatch):
    rounds = []
    monkeypatch.setattr(fuzz.hypothesis, "given", lambda strategy: rounds.append(strategy))
    report = run(lambda values, *more: PASS, vector(Symbol("n", 0, 4000, 8)), most=1500)
    assert report.tried == 1500
    assert rounds == []


def test_a_program_with_state_is_called_with_one_another_and_the_one_again():
    seen = []

    def judge(*calls):
        seen.append(calls)
        return PASS

    run(judge, stateful=True, most=450)
    assert seen[0] == (EXAMPLES, EXAMPLES)
    assert all(len(calls) == 3 and calls[0] == calls[2] for calls in seen[1:])
    assert seen[1][0] == EXAMPLES
    opening = seen[1:300]
    assert all(later[0] == earlier[1] for earlier, later in zip(opening, opening[1:]))


def test_the_calls_up_to_the_failing_one_are_the_finding():
    def judge(*calls):
        differ = len(calls) > 1 and calls[0] != calls[1]
        return Verdict("fail", WRONG.failure, turn=2) if differ else PASS

    found = run(judge, stateful=True).finding
    assert len(found.earlier) == 1
    assert found.earlier[0] != found.values


def test_what_the_program_was_given_before_is_kept_with_a_finding():
    judged = []

    def judge(values):
        judged.append(values)
        return WRONG if len(judged) == 9 else PASS

    report = run(lambda *calls: judge(calls[-1]), most=50)
    assert report.finding.before == (EXAMPLES, *judged[:8])
