"""What is left of the calls before the failing one, for judges that ask for some of them."""

from dataclasses import replace

from builder import Builder
from test_passes import BATCH, one_pass, relu

from minimizer.case import Case, Value
from minimizer.reduce.call_passes import without_each_call
from minimizer.reduce.cut import keep
from minimizer.reduce.dims import Observed
from minimizer.reduce.minimality import certificate
from minimizer.reduce.size import size_key
from strategies.values import Fill


def filled(size, kind):
    return (Value("float32", (size, 8), Fill(kind)),)


def after(case: Case, *calls) -> Case:
    return replace(case, earlier=calls)


def sizes(case: Case) -> list[int]:
    return [call[0].shape[0] for call in case.sequence]


B, LAST = relu()


def test_calls_that_do_not_matter_go():
    case = after(LAST, filled(9, "ones"), filled(3, "ramp"))
    assert one_pass("fewer-calls", case, B.observed(), lambda c: True) == LAST


def test_the_needed_call_of_many_is_found_by_bisection():
    judged = []

    def judge(c: Case) -> bool:
        judged.append(c)
        return 41 in sizes(c)[:-1]

    case = after(LAST, *(filled(k, "ones") for k in range(3, 51)))
    result = one_pass("fewer-calls", case, B.observed(), judge)
    assert sizes(result) == [41, 17]
    assert len(judged) <= 12


def test_a_call_is_given_the_same_inputs_where_it_may():
    case = after(LAST, filled(9, "ones"), filled(3, "ramp"))
    result = one_pass("fewer-calls", case, B.observed(), lambda c: len(c.earlier) == 2)
    assert result.sequence == (LAST.values,) * 3


def test_earlier_calls_become_small_and_plain():
    case = after(LAST, filled(40, "ramp"))
    result = one_pass("earlier", case, B.observed(), lambda c: c.earlier and sizes(c)[0] > 20)
    assert result.earlier == (filled(21, "zeros"),)
    assert result.values == LAST.values


def test_a_call_with_inputs_of_its_own_is_larger_than_one_with_the_same():
    alike, other = after(LAST, LAST.values), after(LAST, filled(2, "zeros"))
    assert size_key(LAST) < size_key(alike) < size_key(other)


def test_a_cut_gives_each_call_what_eager_computed_in_it():
    b = Builder(sizes={"s0": 17}, symbols=(BATCH,))
    x = b.call("relu", b.input("x", ("s0", 8)))
    case = after(b.case(b.call("neg", x, name="y")), filled(5, "ones"))
    observed = dict(b.observed())
    seen = Value("float32", (5, 8), Fill("ramp"))
    observed[x.name] = replace(observed[x.name], earlier=(seen,))
    observed["x"] = Observed(observed["x"].meta, observed["x"].value, (case.earlier[0][0],))
    cut = keep(case, {"y"}, observed)
    assert [i.name for i in cut.program.inputs] == [x.name]
    assert cut.sequence == ((seen,), (observed[x.name].value,))
    assert keep(case, {"y"}, b.observed()) is None, "what the earlier call computed is not known"


def test_a_size_made_static_is_so_in_every_call():
    case = after(relu(symbols=("s0", "s1"))[1], (Value("float32", (30, 20, 8), Fill("ramp")),))
    result = one_pass("static-dims", case, {}, lambda c: len(c.earlier) == 1)
    fixed = [size for size in result.program.inputs[0].meta.shape if isinstance(size, int)]
    assert fixed == [17, 8]
    assert result.earlier[0][0].shape.count(17) == 1


def test_the_certificate_lists_the_calls():
    case = after(LAST, filled(9, "ones"), LAST.values)
    assert [how for how, _ in without_each_call(case)] == ["call 1 of 3", "call 2 of 3"]
    proof = certificate(case, B.observed(), lambda c: len(c.earlier) == 2)
    assert [e.verdict for e in proof.entries if e.part == "call"] == ["passes", "passes"]
