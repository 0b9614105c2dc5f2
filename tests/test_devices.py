"""The device matrix on machines of every kind, with outcomes as each cell has been seen to end."""

from pathlib import Path

import pytest

from minimizer.devices import Cell, Outcome, cells, in_words, keeps_promise, matrix
from minimizer.handover.record import RunRecord
from minimizer.handover.report import report_markdown

RIGHT, REFUSED = Outcome("right"), Outcome("refused", "Incorrect device")
WRONG, DIED = Outcome("wrong", "3 of 8 elements differ"), Outcome("died", "SIGSEGV")


def test_a_box_without_accelerator_has_cells_too():
    found = list(cells(["cpu", "meta"], "cpu"))
    assert found == [
        Cell("cpu", -1, "cpu"),
        Cell("cpu", -1, "meta"),
        Cell("cpu", 0, "cpu"),
        Cell("cpu", 0, "meta"),
    ]
    assert [cell.promised for cell in found] == [True, False, False, False]


def test_every_card_is_loaded_for_and_fed_from():
    found = list(cells(["cpu", "meta", "cuda:0", "cuda:1"], "cuda:0"))
    assert len(found) == 3 * 4
    assert [str(cell) for cell in found if cell.promised] == [
        "cuda:0 package, cuda:0 inputs",
        "cuda:0 package, loaded with device index 0, cuda:0 inputs",
        "cuda:0 package, loaded with device index 1, cuda:1 inputs",
    ]


@pytest.mark.parametrize(
    ("cell", "outcome", "kept"),
    [
        (Cell("cpu", -1, "cpu"), RIGHT, True),
        (Cell("cpu", -1, "cpu"), REFUSED, False),
        (Cell("cpu", -1, "meta"), REFUSED, True),
        (Cell("cpu", -1, "meta"), RIGHT, True),
        (Cell("cpu", -1, "meta"), DIED, False),
        (Cell("cpu", 0, "cpu"), WRONG, False),
        (Cell("cuda:0", 1, "cuda:0"), WRONG, False),
        (Cell("cuda:0", 1, "cuda:1"), REFUSED, False),
        (Cell("meta", -1, "meta"), REFUSED, True),
        (Cell("meta", -1, "meta"), WRONG, False),
    ],
)
def test_a_refusal_or_the_right_answer(cell, outcome, kept):
    assert keeps_promise(cell, outcome) is kept


def machine(devices, unpromised=REFUSED, checked=REFUSED):
    """The matrix of a machine that cannot compile for meta."""
    asked = []

    def compile_on(device):
        return (None, Outcome("refused", "no backend")) if device == "meta" else (Path(device), RIGHT)

    def attempt(cell, package, check):
        asked.append((cell, check))
        assert package == Path(cell.compiled)
        return RIGHT if cell.promised else checked if check else unpromised

    return list(matrix(devices, compile_on, attempt)), asked


def test_what_cannot_be_compiled_for_is_one_cell():
    rows, asked = machine(["cpu", "meta"])
    assert rows[-1] == (Cell("meta", -1, "meta"), Outcome("refused", "no backend"))
    assert len(rows) == 5
    assert not any(check for _, check in asked)


def test_what_breaks_the_promise_is_tried_with_the_check():
    rows, asked = machine(["cpu", "meta"], unpromised=DIED)
    assert sum(check for _, check in asked) == 3
    assert rows[1][1] == Outcome("died", "SIGSEGV", "refused")
    assert in_words(rows[1][1]) == "died (SIGSEGV); refused with AOTI_RUNTIME_CHECK_INPUTS=1"


def test_the_report_has_a_table():
    row = {"compiled": "cpu", "loaded": -1, "inputs": "meta", "outcome": "died (SIGSEGV)", "kept": False}
    text = report_markdown(RunRecord(status="none", devices=(row,)))
    assert "| cpu package, meta inputs | **died (SIGSEGV)** |" in text
