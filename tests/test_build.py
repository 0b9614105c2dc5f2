"""Tensors and modules from descriptions: the same elements, strides and gaps, and no way out of the store."""

from dataclasses import replace

import pytest

from minimizer.build import Built, Store, clone_exact, describe, example_tensor, make_tensor, restride
from minimizer.case import Literal, Stored, Value
from minimizer.program import Input, Node, Program, Ref, State, Symbol, TensorMeta, Tree
from strategies import Fill

torch = pytest.importorskip("torch")


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "tensors")


def ramp(*shape):
    return torch.arange(float(torch.Size(shape).numel())).reshape(shape)


LAYOUTS = {
    "contiguous": ramp(3, 4),
    "transposed": ramp(4, 3).t(),
    "channels last": ramp(2, 3, 4, 5).to(memory_format=torch.channels_last),
    "gaps": ramp(3, 8)[:, ::2],
    "offset": ramp(5, 4)[2:],
    "expanded": ramp(1, 4).expand(3, 4),
    "overlapping windows": ramp(6).as_strided((4, 3), (1, 1)),
    "one element": ramp(1),
    "no dims": torch.tensor(3.0),
    "empty": torch.empty(0, 4),
    "empty with odd strides": torch.empty_strided((2, 0), (7, 3)),
    "odd stride of a single row": ramp(4).as_strided((1, 4), (99, 1)),
}


@pytest.mark.parametrize("tensor", LAYOUTS.values(), ids=LAYOUTS.keys())
def test_clones_keep_layout_and_own_their_memory(tensor):
    clone = clone_exact(tensor)
    assert torch.equal(clone, tensor)
    assert clone.stride() == tensor.stride()
    assert tensor.numel() == 0 or clone.data_ptr() != tensor.data_ptr()


def test_clones_of_a_view_hold_no_more_than_it_needs():
    assert clone_exact(ramp(100, 4)[16:18]).untyped_storage().nbytes() == 8 * 4
    assert clone_exact(ramp(100, 4)[10:12]).untyped_storage().nbytes() == (8 + 8) * 4


def test_clones_keep_the_alignment():
    for start in range(40):
        view = ramp(50, 1)[start:, 0][:5]
        clone = clone_exact(view)
        assert torch.equal(clone, view)
        assert clone.storage_offset() % 16 == start % 16
        assert clone.storage_offset() < 16


def test_a_value_with_an_offset_is_not_aligned(store):
    value = Value("float32", (3, 4), Fill("ramp"), offset=1)
    made = make_tensor(value, store)
    assert made.storage_offset() == 1
    assert torch.equal(made, make_tensor(replace(value, offset=0), store))
    assert clone_exact(made).storage_offset() == 1


def test_clones_of_conjugates_are_plain_values():
    tensor = torch.tensor([1 + 2j, 3 - 1j]).conj()
    assert torch.equal(clone_exact(tensor), tensor)


@pytest.mark.parametrize("tensor", LAYOUTS.values(), ids=LAYOUTS.keys())
def test_stored_tensors_come_back_as_they_were(store, tensor):
    name = store.put("t", tensor)
    found = store.get(name)
    assert torch.equal(found, tensor)
    assert found.stride() == tensor.stride()
    value = describe(tensor, Stored(name))
    again = make_tensor(value, store)
    assert torch.equal(again, tensor)
    assert tensor.numel() == 0 or again.stride() == tensor.stride()


@pytest.mark.parametrize("name", ["../t", "../../etc/passwd", "/etc/passwd", "sub/t", "link"])
def test_no_name_leads_out_of_the_store(store, tmp_path, name):
    store.put("t", ramp(2))
    torch.save(ramp(2), tmp_path / "t.pt")
    (store.folder / "link.pt").symlink_to(tmp_path / "t.pt")
    with pytest.raises(ValueError, match="not a stored tensor"):
        store.get(name)


def test_only_tensors_are_read(store):
    store.put("t", ramp(2))
    torch.save({"a": ramp(2)}, store.folder / "dict.pt")
    with pytest.raises(ValueError, match="not a stored tensor"):
        store.get("dict")
    with pytest.raises(FileNotFoundError):
        store.get("nothing")


@pytest.mark.parametrize("stride", [(4, 1), (1, 3), (8, 2), (5, 1), (40, 7)])
def test_restriding_keeps_the_elements(stride):
    found = restride(ramp(3, 4), stride)
    assert found.stride() == stride
    assert torch.equal(found, ramp(3, 4))


def test_restriding_to_stride_zero_repeats_the_first():
    found = restride(ramp(3, 4), (0, 1))
    assert found.stride() == (0, 1)
    assert torch.equal(found, ramp(3, 4)[:1].expand(3, 4))
    assert torch.equal(restride(ramp(3, 4), (0, 0)), torch.zeros(3, 4))


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "bfloat16", "complex64", "float8_e4m3fn"])
def test_restriding_any_dtype(dtype):
    tensor = ramp(2, 3).to(getattr(torch, dtype))
    found = restride(tensor, (1, 2))
    assert found.dtype == tensor.dtype
    assert found.tolist() == tensor.tolist() if dtype != "float8_e4m3fn" else found.stride() == (1, 2)


def test_restriding_nothing():
    assert restride(torch.empty(0, 3), (1, 5)).shape == (0, 3)


def test_values_become_tensors(store):
    literal = make_tensor(Value("int8", (2, 2), Literal((1, -2, 3, 4)), stride=(1, 2)), store)
    assert literal.tolist() == [[1, -2], [3, 4]]
    assert (literal.dtype, literal.stride()) == (torch.int8, (1, 2))
    filled = make_tensor(Value("float16", (3,), Fill("ramp")), store)
    assert (filled.tolist(), filled.dtype) == ([0.0, 1.0, 2.0], torch.float16)
    index = make_tensor(Value("int64", (4,), Fill("index_last"), bound=7), store)
    assert index.tolist() == [6, 6, 6, 6]
    meta = make_tensor(Value("float32", (2, 3), Stored(""), device="meta"), store)
    assert (meta.device.type, meta.shape) == ("meta", (2, 3))


def test_a_stored_tensor_is_cut_down(store):
    store.put("t", ramp(4, 5))
    cut = make_tensor(Value("float32", (2, 3), Stored("t"), take=(2, 3)), store)
    assert torch.equal(cut, ramp(4, 5)[:2, :3])
    assert cut.is_contiguous()
    columns = make_tensor(Value("float32", (2, 3), Stored("t"), stride=(1, 2), take=(2, 3)), store)
    assert torch.equal(columns, ramp(4, 5)[:2, :3])
    assert columns.stride() == (1, 2)


def test_examples_have_the_sizes_of_the_hints():
    meta = TensorMeta("int8", ("2*n", 3), (1, "2*n"))
    example = example_tensor(meta, {"n": 4})
    assert (example.shape, example.stride(), example.dtype) == ((8, 3), (1, 8), torch.int8)


META = TensorMeta("float32", ("n", 2), (2, 1))
NESTED = Program(
    inputs=(Input("x", META), Input("y", META)),
    nodes=(
        Node("z", "aten.add.Tensor", (Ref("x"), Ref("y")), meta=META),
        Node("w", "aten.mul_.Tensor", (Ref("scale"), 2), meta=META, mutates=(0,)),
        Node("v", "aten.mul.Tensor", (Ref("z"), Ref("scale")), meta=META),
    ),
    output=Tree("dict", ("out",), ([Ref("v"), None],)),
    state=(State("scale", "buffer", TensorMeta("float32", (1,), (1,)), "state_scale"),),
    symbols=(Symbol("n", 2, 64, 5),),
    args=(Tree("dict", ("k",), ((Ref("x"), 3),)), None),
    kwargs=(("bias", [Ref("y")]),),
)


def test_a_program_runs_as_a_module_with_fresh_state(store):
    store.put("state_scale", torch.tensor([3.0]))
    built = Built(NESTED, store)
    args, kwargs = built.nest([ramp(4, 2), torch.ones(4, 2)])
    assert args[0]["k"][1] == 3
    assert args[1] is None
    for _ in range(2):
        found = built.module()(*args, **kwargs)
        assert found["out"][1] is None
        assert torch.equal(found["out"][0], (ramp(4, 2) + 1) * 6)
    assert torch.equal(store.get("state_scale"), torch.tensor([3.0]))


def test_a_program_is_exported_at_its_hints(store):
    store.put("state_scale", torch.tensor([3.0]))
    built = Built(NESTED, store)
    assert [tuple(t.shape) for t in built.examples()] == [(5, 2), (5, 2)]
    args, kwargs = built.nest(built.examples())
    ep = torch.export.export(built.module(), args, kwargs, dynamic_shapes=built.dynamic_shapes)
    bounds = {(int(r.lower), int(r.upper)) for r in ep.range_constraints.values()}
    assert bounds == {(2, 64)}
