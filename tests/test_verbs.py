"""The short verbs."""

import json

from minimizer.case import case_to_json
from minimizer.cli import main
from minimizer.doctor import BUG, examine, patient


def test_the_doctor_proves_the_pipeline(sandbox):
    found = {finding.what: finding for finding in examine(sandbox)}
    assert [name for name, finding in found.items() if finding.good is False] == []
    assert found["healthy twin"].said == "pass"
    assert "elements differ" in found["injected bug"].said
    assert found["reduction"].said == "3 calls → aten.relu.default"
    assert found["without the bug"].said == "pass"


def test_a_stored_case_is_replayed(tmp_path, capsys):
    (tmp_path / "case").mkdir()
    (tmp_path / "case" / "case.json").write_text(json.dumps(case_to_json(patient((BUG,)))))
    assert main(["replay", str(tmp_path)]) == 1
    assert "fails 3 of 3 fresh runs" in capsys.readouterr().out


def test_junk_is_not_a_case(tmp_path, capsys):
    junk = tmp_path / "case.json"
    junk.write_text('{"program": {"Evil": {}}}')
    assert main(["replay", str(junk)]) == 2
    assert "is not a stored case" in capsys.readouterr().err
