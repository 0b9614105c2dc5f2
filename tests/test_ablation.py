"""Other settings, judged by a bench that answers as told: which rows there are, in which words."""

from dataclasses import replace
from itertools import islice

import pytest

from minimizer.ablation import FAILS, NOT_APPLICABLE, SETTINGS, VANISHES, Ablation, Row, blamed
from minimizer.doctor import BUG, patient
from minimizer.oracle.case_bench import CaseBench
from minimizer.oracle.verdict import PASS, Failure, Verdict

WRONG = Failure("wrong_value", "run", flavour="values")
CRASH = Failure("crash", "run", exception="SIGSEGV")


class Bench:
    """Passes under the settings that are named, says otherwise what it is given."""

    store = "nowhere"

    def __init__(self, cures=(), failure=WRONG, inductor=None):
        self.cures = set(cures)
        self.failure = failure
        self.inductor = inductor or Verdict("fail", failure)
        self.judged = []

    def judge(self, case, level, *, fresh):
        assert fresh
        self.judged.append(case)
        if case.settings.path == "inductor":
            return self.inductor
        return (
            PASS if self.cures & {key for key, _ in case.settings.config} else Verdict("fail", self.failure)
        )


class Sandbox:
    """Answers the tasks of workers by name."""

    def __init__(self, tmp_path, **answers):
        self.scratch = tmp_path
        self.answers = {
            "judge_backend": PASS,
            "judge_without_decompositions": PASS,
            "bisect": None,
            **answers,
        }

    def worker(self, environment):
        return self

    def call(self, task, *args, timeout):
        answer = self.answers[task.rpartition(":")[2]]
        return answer(*args) if callable(answer) else answer

    def close(self):
        pass


def ablated(tmp_path, bench, failure=WRONG, case=None, **answers):
    return Ablation(Sandbox(tmp_path, **answers), bench, case or patient(()), failure, "jit")


def test_each_setting_is_a_row_and_one_changes_at_a_time(tmp_path):
    bench = Bench(cures=["cpp.simdlen"])
    rows = {row.setting: row.result for row in ablated(tmp_path, bench).rows()}
    assert rows["scalar code"] == VANISHES
    assert rows["one thread"] == rows["no fusion"] == FAILS
    assert [s.name for s in SETTINGS if s.name not in rows] == []
    changed = [dict(case.settings.config) for case in bench.judged if case.settings.config]
    assert changed == [dict(s.config) for s in SETTINGS]


def test_a_case_that_does_not_fail_has_no_rows(tmp_path):
    bench = Bench()
    bench.judge = lambda case, level, fresh: PASS
    assert list(ablated(tmp_path, bench).rows()) == []


def test_milder_backends_are_asked_only_while_the_stronger_fails(tmp_path):
    asked = []

    def backend(case, store, name):
        asked.append(name)
        return Verdict("fail", WRONG) if name == "aot_eager" else PASS

    rows = {row.setting: row.result for row in ablated(tmp_path, Bench(), judge_backend=backend).rows()}
    assert rows["torch.compile(backend='inductor')"] == rows["torch.compile(backend='aot_eager')"] == FAILS
    assert rows["torch.compile(backend='eager')"] == VANISHES
    asked.clear()
    rows = {row.setting for row in ablated(tmp_path, Bench(inductor=PASS), judge_backend=backend).rows()}
    assert asked == [] and "torch.compile(backend='aot_eager')" not in rows


def test_what_fails_under_torch_compile_is_tried_ahead_of_time(tmp_path):
    class There(Bench):
        def judge(self, case, level, *, fresh):
            return PASS if case.settings.path == "aoti" else Verdict("fail", WRONG)

    case = patient(())
    case = replace(case, settings=replace(case.settings, path="inductor"))
    rows = list(ablated(tmp_path, There(), case=case).rows())
    assert rows[0] == Row("AOTInductor", VANISHES)
    assert blamed(rows[:1]) == "AOTInductor passes"


@pytest.mark.parametrize(
    ("verdict", "word"),
    [
        (Verdict("invalid", reason="cannot be built"), NOT_APPLICABLE),
        (Verdict("fail", Failure("runtime_error", "run", exception="Unsupported")), NOT_APPLICABLE),
        (Verdict("fail", CRASH), "fails otherwise: crash"),
    ],
)
def test_words_for_what_is_neither_the_same_nor_gone(tmp_path, verdict, word):
    rows = {row.setting: row.result for row in ablated(tmp_path, Bench(inductor=verdict)).rows()}
    assert rows["torch.compile(backend='inductor')"] == word


def test_an_error_that_is_raised_elsewhere_is_the_same(tmp_path):
    compile_error = Failure("compile_error", "lower", "no lowering", exception="NotImplementedError")
    there = Verdict(
        "fail", Failure("runtime_error", "run", "backend failed", exception="BackendCompilerFailed")
    )
    bench = Bench(failure=compile_error, inductor=there)
    rows = {row.setting: row.result for row in ablated(tmp_path, bench, compile_error).rows()}
    assert rows["torch.compile(backend='inductor')"] == FAILS
    assert "one thread" not in rows  # nothing runs


def test_nothing_new_is_begun_when_time_is_up(tmp_path):
    seconds = iter([1.0, 1.0, 0.0] + [0.0] * 50)
    ablation = ablated(tmp_path, Bench(inductor=PASS))
    ablation.left = lambda: next(seconds)
    assert [row.setting for row in ablation.rows()] == [
        "torch.compile(backend='inductor')",
        "no decomposition of its operators",
        SETTINGS[0].name,
    ]


def test_a_setting_that_the_case_has_already_is_left_out(tmp_path):
    case = patient((("pattern_matcher", False),))
    names = [row.setting for row in ablated(tmp_path, Bench(), case=case).rows()]
    assert "no pattern matcher" not in names and "no fusion" in names


def test_the_bisector_is_asked_where_the_process_lives(tmp_path):
    found = ("inductor", "lowerings", 3, "aten.relu.default")
    ablation = ablated(tmp_path, Bench(), bisect=found)
    assert ablation.bisected() == ""  # not seen under torch.compile yet
    list(ablation.rows())
    assert ablation.bisected() == "inductor · lowerings · number 3 · aten.relu.default"
    crashing = ablated(tmp_path, Bench(failure=CRASH), CRASH, bisect=found)
    list(crashing.rows())
    assert crashing.bisected() == ""


def test_the_words_name_what_cures():
    rows = [
        Row("torch.compile(backend='inductor')", FAILS),
        Row("torch.compile(backend='aot_eager')", VANISHES),
        Row("scalar code", VANISHES),
        Row("one thread", FAILS),
        Row("no fusion", NOT_APPLICABLE),
    ]
    assert blamed(rows).splitlines() == [
        "vanishes with: scalar code",
        "fails all the same with: one thread",
        "torch.compile(backend='inductor') fails",
        "torch.compile(backend='aot_eager') passes",
    ]
    assert blamed([]) == ""


@pytest.mark.compiles
def test_a_lowering_that_is_wrong_is_found_by_pytorchs_own_bisector(sandbox, tmp_path):
    case = patient((BUG,))
    ablation = Ablation(sandbox, CaseBench(sandbox, tmp_path), case, WRONG, "jit")
    rows = {row.setting: row.result for row in islice(ablation.rows(), 2)}
    assert rows == {
        "torch.compile(backend='inductor')": FAILS,
        "no decomposition of its operators": NOT_APPLICABLE,
    }
    assert ablation.bisected() == "inductor · lowerings · number 1 · relu"
