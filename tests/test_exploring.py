"""The loop over variants, with artifacts that fail on purpose: order, shares of time, what is said."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from minimizer import exploring
from minimizer.case import Value
from minimizer.console import Console
from minimizer.exploring import explore
from minimizer.handover.record import RunRecord
from minimizer.options import Options
from minimizer.oracle.requests import TargetInfo, TargetRequest
from minimizer.oracle.verdict import PASS, Failure, Verdict
from minimizer.program import Input, Program, Symbol, TensorMeta
from minimizer.sandbox import TaskError
from minimizer.variant import Wanted
from strategies.values import Fill

PROGRAM = Program(
    (Input("x", TensorMeta("float32", ("n", 4), (4, 1))),), (), (), symbols=(Symbol("n", 2, 9, 3),)
)
INFO = TargetInfo(
    program=PROGRAM,
    untranslatable="",
    examples=(Value("float32", (3, 4), Fill("normal")),),
    config=(),
    stateful=False,
    files=("model.py",),
    devices=("cpu",),
    versions=(),
)
WRONG = Verdict("fail", Failure("wrong_value", "run", flavour="values"))
CXX = Failure("cxx_error", "cxx", "no matching function")


@dataclass
class Bench:
    """An artifact. `world` says, for what a variant is called, how its compilation or its inputs end."""

    request: TargetRequest
    package: Path
    info: TargetInfo | None
    world: dict = field(default_factory=dict)
    clock: SimpleNamespace | None = None
    closed: bool = False

    @property
    def ends(self):
        return self.world.get(self.request.variant.in_words(["x"]), PASS)

    def open(self):
        self.clock.spent += 1
        if isinstance(self.ends, TaskError):
            raise self.ends
        self.info = INFO
        return INFO

    def compile(self, limit):
        self.clock.spent += 9
        return self.ends if isinstance(self.ends, Failure) else None

    def generated_code(self):
        return ""

    def judge_many(self, batch):
        self.clock.spent += 0.01
        values = batch[0][-1]
        return [self.ends if len(values) == 1 and isinstance(self.ends, Verdict) else PASS]

    def close(self):
        self.closed = True


@pytest.fixture
def made():
    return []


@pytest.fixture
def run(monkeypatch, made, tmp_path):
    """`explore` on a machine where opening takes a second, compiling nine, and an input a hundredth."""

    def go(world=None, *, budget=300.0, **asked):
        clock = SimpleNamespace(spent=0.0)

        def bench(sandbox, request, package, environment, *, info=None):
            made.append(Bench(request, package, info, world or {}, clock))
            return made[-1]

        monkeypatch.setattr(exploring, "TargetBench", bench)
        fake = SimpleNamespace(
            options=Options(Path("model.py"), tmp_path, budget, wanted=Wanted(**asked)),
            clock=clock,
            console=Console(quiet=True),
            sandbox=SimpleNamespace(scratch=tmp_path),
            request=TargetRequest("model.py", str(tmp_path)),
            bench=SimpleNamespace(open_timeout=60.0),
            record=RunRecord(inputs_tried=100),
            compile_limit=60.0,
            compiles=0,
        )
        fake.note = lambda **known: setattr(fake, "record", replace(fake.record, **known))
        fake.found = explore(fake, INFO)
        return fake

    (tmp_path / "model.py").write_text("")
    monkeypatch.setattr(exploring, "recognise", lambda path: SimpleNamespace(kind=exploring.MODEL_FILE))
    return go


def outcomes(fake):
    return [(row["variant"], row["outcome"]) for row in fake.record.variants]


def test_without_a_failure_every_variant_is_tried_and_closed(run, made):
    fake = run()
    assert fake.found is None
    assert outcomes(fake) == [("x transposed", "no failure"), ("x sliced", "no failure")]
    assert all(bench.closed for bench in made)
    assert fake.compiles == 2
    assert fake.record.inputs_tried == 100 + sum(row["inputs"] for row in fake.record.variants)


def test_the_first_failure_ends_it_and_its_artifact_stays(run, made):
    fake = run({"x transposed": WRONG})
    assert outcomes(fake) == [("x transposed", "wrong_value at input 1")]
    assert fake.found.failure == WRONG.failure
    assert fake.found.bench is made[0] and not made[0].closed
    assert fake.found.finding.values == INFO.examples


def test_a_mild_failure_is_followed_only_where_variants_are_asked_for(run):
    stride = Verdict("fail", Failure("wrong_metadata", "run", flavour="stride"))
    fake = run({"x transposed": stride})
    assert fake.found is None
    assert outcomes(fake)[0][1].startswith("wrong_metadata at input 1 (mild")
    assert run({"x transposed": stride}, layouts="wide").found.failure == stride.failure


def test_what_does_not_compile_is_a_failure_without_an_input(run):
    fake = run({"x sliced": CXX})
    assert fake.found.failure == CXX
    assert fake.found.finding is None
    assert outcomes(fake)[-1] == ("x sliced", "cxx_error: no matching function")


def test_what_cannot_be_exported_so_is_skipped_and_said(run):
    fake = run({"x transposed": TaskError("Unusable", "eager refuses it", "")})
    assert outcomes(fake)[0] == ("x transposed", "skipped: eager refuses it")
    assert outcomes(fake)[1] == ("x sliced", "no failure")


def test_half_of_the_budget_is_all_that_it_takes(run):
    fake = run(budget=120.0, settings="wide")
    assert 40 < fake.clock.spent <= 60 + 10
    assert 3 <= len(fake.record.variants) < 20


def test_options_need_no_new_export(run, made):
    run({"freezing=True": WRONG}, layouts="none", settings="common")
    assert made[0].info.config == (("freezing", True),)
    assert made[0].request.variant.config == (("freezing", True),)


def test_nothing_asked_nothing_said(run):
    fake = run(layouts="none")
    assert fake.found is None
    assert fake.record.variants is None
