"""One level, one signature: what counts, and what is kept aside."""

from judges import CASE, CRASH, WRONG, Bench

from minimizer.oracle.verdict import PASS, Verdict
from minimizer.prosecutor import Prosecutor


def test_an_invalid_candidate_is_not_asked_for_again():
    bench = Bench(full=[Verdict("invalid"), WRONG])
    judge = Prosecutor(bench, "full", WRONG.signature, repeats=5)
    assert judge(CASE) is False
    assert (judge.judged, bench.asked) == (1, [("full", False)])


def test_another_failure_is_kept_aside():
    judge = Prosecutor(Bench(full=[WRONG, CRASH, CRASH, PASS]), "full", WRONG.signature)
    assert [judge(CASE) for _ in range(4)] == [True, False, False, False]
    assert judge.also == {CRASH.signature: (CASE, CRASH)}
    assert judge.judged == 4
