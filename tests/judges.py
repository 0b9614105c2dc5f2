"""Programs to judge, and a bench that answers from a list, for tests of who judges what."""

from minimizer.case import Case, Settings, Value
from minimizer.oracle.verdict import PASS, Failure, Verdict
from minimizer.program import Input, Node, Program, Ref, TensorMeta
from strategies import Fill

M = TensorMeta("float32", (4,), (1,))


def chain(*targets):
    nodes, last = [], "x"
    for k, target in enumerate(targets):
        nodes.append(Node(f"v{k}", target, (Ref(last),), meta=M))
        last = f"v{k}"
    program = Program((Input("x", M),), tuple(nodes), Ref(last))
    return Case(program, (Value("float32", (4,), Fill("normal")),), Settings())


CASE = chain("aten.relu.default", "aten.softmax.int", "aten.sum.dim_IntList", "aten.relu.default")
WRONG = Failure("wrong_value", "run", flavour="values")
NAN = Failure("wrong_value", "run", flavour="values: not finite")
CRASH = Failure("crash", "run", exception="SIGSEGV")


class Bench:
    """Answers by level, one verdict after the other; the last one stays."""

    def __init__(self, **answers):
        self.asked = []
        self._answers = {level: list(a) if isinstance(a, list) else [a] for level, a in answers.items()}

    def judge(self, case, level="full", *, fresh=False):
        self.asked.append((level, fresh))
        answers = self._answers.get(level, [PASS])
        failure = answers.pop(0) if len(answers) > 1 else answers[0]
        return Verdict("fail", failure) if isinstance(failure, Failure) else failure
