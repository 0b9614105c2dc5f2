"""Exported models become programs, programs become source, and the source is the same model again."""

import copy
import pickle
from tempfile import TemporaryDirectory

import pytest

torch = pytest.importorskip("torch")

from exported import SAMPLES, Pair, function  # noqa: E402
from torch.utils import _pytree as pytree  # noqa: E402

from minimizer.build import Built, Store  # noqa: E402
from minimizer.interpret import interpret  # noqa: E402
from minimizer.liveness import prune  # noqa: E402
from minimizer.program import Ref, from_json, to_json  # noqa: E402
from minimizer.source import missing_symbols, module_source, unresolved_references  # noqa: E402
from minimizer.tracing import program_from_export, skeleton  # noqa: E402


@pytest.fixture(scope="module", params=SAMPLES, ids=str)
def traced(request, tmp_path_factory):
    """A sample, its exported program, its translation and the store."""
    sample = SAMPLES[request.param]
    store = Store(tmp_path_factory.mktemp("tensors"))
    ep = torch.export.export(
        copy.deepcopy(sample.module), sample.args, sample.kwargs or None, dynamic_shapes=sample.dynamic
    )
    return sample, ep, program_from_export(ep, store), store


def leaves(value):
    return pytree.tree_leaves(value, is_leaf=lambda leaf: leaf is None)


def assert_same(found, expected):
    """Same structure, types, dtypes, strides and values."""
    assert pytree.tree_structure(found) == pytree.tree_structure(expected)
    for f, e in zip(leaves(found), leaves(expected), strict=True):
        if isinstance(e, torch.Tensor):
            assert (f.dtype, f.stride()) == (e.dtype, e.stride())
            torch.testing.assert_close(f, e, rtol=0, atol=0, equal_nan=True)
        else:
            assert (f, type(f)) == (e, type(e))


def tensors(args, kwargs):
    return [leaf for leaf in leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]


def calls(sample):
    return [sample.args, *sample.others]


def test_the_source_computes_the_same(traced):
    sample, _, program, store = traced
    built = Built(program, store)
    for args in calls(sample):
        theirs, ours = copy.deepcopy((args, sample.kwargs)), copy.deepcopy((args, sample.kwargs))
        expected = copy.deepcopy(sample.module)(*theirs[0], **theirs[1])
        nested, named = built.nest(tensors(*ours))
        found = built.module()(*nested, **named)
        assert_same(found, expected)
        assert_same(tensors(*ours), tensors(*theirs))


def test_state_changes_the_same(traced):
    sample, _, program, store = traced
    model, module = copy.deepcopy(sample.module), Built(program, store).module()
    for _ in range(3):
        args, kwargs = copy.deepcopy((sample.args, sample.kwargs))
        expected = model(*args, **kwargs)
        args, kwargs = copy.deepcopy((sample.args, sample.kwargs))
        nested, named = Built(program, store).nest(tensors(args, kwargs))
        assert_same(module(*nested, **named), expected)


def test_the_source_exports_to_the_same_program(traced, tmp_path):
    sample, _, program, store = traced
    built = Built(program, store)
    args, kwargs = built.nest(built.examples())
    if any(s.hint != 0 for s in program.symbols) or not program.symbols:
        args, kwargs = built.nest(tensors(sample.args, sample.kwargs))
    ep = torch.export.export(built.module(), args, kwargs or None, dynamic_shapes=built.dynamic_shapes)
    again = program_from_export(ep, Store(tmp_path))
    assert again.fingerprint == program.fingerprint, (
        module_source(again, {s.name: f'state["{s.name}"]' for s in again.state}) + built.source
    )


def test_the_hints_are_the_example_s_sizes(traced):
    sample, _, program, store = traced
    shapes = [tuple(t.shape) for t in tensors(sample.args, sample.kwargs)]
    assert [tuple(t.shape) for t in Built(program, store).examples()] == shapes


def test_programs_are_well_formed(traced):
    _, _, program, _ = traced
    assert unresolved_references(program) == ()
    assert missing_symbols(program) == frozenset()
    assert from_json(to_json(program)) == program
    assert prune(program).nodes == program.nodes


def test_a_program_is_plain_data(traced):
    """The main process, which never imports torch, reads it."""
    *_, program, _ = traced
    assert b"ctorch" not in pickle.dumps(program, protocol=0)


def test_interpreting_computes_the_same(traced):
    sample, _, program, store = traced
    for args in calls(sample):
        theirs, ours = copy.deepcopy((args, sample.kwargs)), copy.deepcopy((args, sample.kwargs))
        expected = copy.deepcopy(sample.module)(*theirs[0], **theirs[1])
        found = interpret(program, tensors(*ours), Built(program, store).state())
        assert_same(found, expected)
        assert_same(tensors(*ours), tensors(*theirs))


def test_a_skeleton_has_the_same_inputs(traced):
    _, ep, program, _ = traced

    def inputs(p):
        return [(i.meta.dtype, len(i.meta.shape)) for i in p.inputs]

    def ranges(p):
        return [(s.low, s.high, s.hint) for s in p.symbols]

    bare = skeleton(ep)
    assert inputs(bare) == inputs(program)
    assert ranges(bare) == ranges(program)


def translated(module, *args, names=None, **more):
    """The program of a module; its state tensors are not kept."""
    with TemporaryDirectory() as folder:
        return program_from_export(torch.export.export(module, args, **more), Store(folder), names)


def test_the_person_s_names_of_sizes_are_kept_unless_taken():
    model = function(lambda self, rows, n: rows.sum(1) + n)
    dims = {"rows": {0: torch.export.Dim("rows", min=2), 1: torch.export.Dim("width")}, "n": None}
    ep = torch.export.export(model, (torch.ones(3, 4), torch.ones(1)), dynamic_shapes=dims)
    symbols = [str(s) for s in ep.graph.find_nodes(op="placeholder")[0].meta["val"].shape]
    for names, sizes in [(("rows", "width"), ("rows_", "width")), (("in", "max"), ("in_", "max_"))]:
        named = dict(zip(symbols, names))
        program = translated(model, torch.ones(3, 4), torch.ones(1), names=named, dynamic_shapes=dims)
        assert program.inputs[0].meta.shape == sizes


def test_the_person_s_own_lines_and_modules_are_remembered():
    program = translated(SAMPLES["layers"].module, torch.ones(3, 4))
    assert [n.module for n in program.nodes][:2] == ["body.0", "body.1"]
    lines = {n.where.partition(" ")[2] for n in program.nodes}
    assert lines == {"return self.norm(self.body(x)) + self.shared(x)[:, :2] + self.table"}
    assert all(n.where.startswith("exported.py:") for n in program.nodes)


def test_writes_are_known():
    program = translated(SAMPLES["in place"].module, torch.ones(4, 5))
    written = [n.target for n in program.nodes if n.mutates == (0,)]
    assert written == ["aten.add_.Tensor", "aten.mul_.Tensor", "aten.add_.Tensor"]


def test_what_is_watched_is_seen_before_later_writes():
    program = translated(SAMPLES["in place"].module, torch.ones(4, 5))
    start, x, seen = torch.arange(20.0).reshape(4, 5), torch.arange(20.0).reshape(4, 5), {}
    interpret(program, [x], {}, lambda name, value: seen.setdefault(name, value.clone()))
    clone = next(n.name for n in program.nodes if n.target == "aten.clone.default")
    assert list(seen) == ["x", *(n.name for n in program.nodes)]
    assert torch.equal(seen[clone], start)
    assert torch.equal(seen["x"], start)
    assert torch.equal(x, start + 10)


def test_a_container_of_the_person_s_own_becomes_a_plain_tuple():
    program = translated(function(lambda self, x: Pair(x, Pair(x + 1, x))), torch.ones(2))
    assert program.output == (Ref("x"), Ref(program.nodes[0].name), Ref("x"))
