"""Notes that two holders of one page see."""

import os

import pytest

from minimizer.sandbox.board import Board, Note, memory


@pytest.fixture
def boards():
    fd = memory()
    yield Board(fd), Board(fd)
    os.close(fd)


def test_an_empty_board_says_nothing(boards):
    assert boards[1].read() == Note()


def test_the_last_note_counts(boards):
    writer, reader = boards
    writer.enter("export")
    first = reader.read()
    writer.enter("run")
    second = reader.read()
    assert (first.stage, second.stage) == ("export", "run")
    assert second.number > first.number
    assert second.since >= first.since
    assert (second.item, second.begun) == (0, 0.0)


def test_stages_belong_to_the_item_that_was_begun(boards):
    writer, reader = boards
    writer.begin(7)
    begun = reader.read()
    writer.enter("run")
    note = reader.read()
    assert (begun.stage, begun.item) == ("", 7)
    assert (note.stage, note.item, note.begun) == ("run", 7, begun.begun)


def test_a_new_task_is_at_no_item(boards):
    writer, reader = boards
    writer.begin(7)
    writer.start()
    writer.enter("import")
    assert (reader.read().item, reader.read().begun) == (0, 0.0)


def test_a_long_stage_is_cut(boards):
    writer, reader = boards
    writer.enter("x" * 10_000)
    assert reader.read().stage == "x" * len(reader.read().stage)
    assert 4000 < len(reader.read().stage) < 4096


def test_a_note_that_was_never_finished_does_not_hang_its_reader(boards):
    writer, reader = boards
    writer.enter("run")
    writer._memory[0] = 3
    assert reader.read().number == 3
