"""What a run that found something leaves, without a run."""

import json

from minimizer.case import Case, Value, case_to_json
from minimizer.program import Input, Node, Program, Ref, TensorMeta
from strategies.values import Fill


def relu_case(operator="relu"):
    meta = TensorMeta("float32", (4,), (1,))
    node = Node("v", f"aten.{operator}.default", (Ref("x"),), meta=meta)
    return Case(Program((Input("x", meta),), (node,), (Ref("v"),)), (Value("float32", (4,), Fill("normal")),))


def write_run(folder, case, *, verified=2):
    """What a run that found something leaves."""
    (folder / "case/reduced").mkdir(parents=True)
    about = {"signature": "wrong_value · run · values"}
    (folder / "case/reduced/case.json").write_text(json.dumps({**case_to_json(case), "about": about}))
    (folder / "repro.py").write_text("print('<script>')\n")
    summary = {
        "status": "failure",
        "message": "output 0: <b> & 3 of 4 elements differ",
        "repro_verified": {"runs": 2, "failures": verified},
        "versions": {"torch": "2.13.0"},
    }
    (folder / "summary.json").write_text(json.dumps(summary))
