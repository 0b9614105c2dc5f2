"""Front doors other than a model file: what they give, and what they say when they cannot."""

import io
import json
import os
import shutil
import zipfile
from dataclasses import replace

import pytest

torch = pytest.importorskip("torch")

from torch._dynamo.repro import after_aot, aoti  # noqa: E402
from torch._inductor import config as inductor_config  # noqa: E402

from minimizer.build import Store, describe  # noqa: E402
from minimizer.case import Case, Settings, Stored, case_to_json  # noqa: E402
from minimizer.targets import doors, exported, model_file  # noqa: E402
from minimizer.targets.model_file import Unusable  # noqa: E402
from minimizer.tracing import program_from_export  # noqa: E402


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.arange(8.0))

    def forward(self, x, *, shift=None):
        return torch.relu(x * self.w).sum(1) + (0 if shift is None else shift)


@pytest.fixture(scope="module")
def program():
    dims = {"x": {0: torch.export.Dim("b", min=2, max=64)}, "shift": None}
    example, named = (torch.ones(4, 8),), {"shift": torch.ones(1)}
    return torch.export.export(Net(), example, named, dynamic_shapes=dims)


@pytest.fixture
def saved(tmp_path, program):
    path = tmp_path / "net.pt2"
    torch.export.save(program, path)
    return path


def edited(path, change):
    """The archive with its model description changed."""
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    name = next(name for name in parts if name.endswith("models/model.json"))
    about = json.loads(parts[name])
    change(about)
    parts[name] = json.dumps(about).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for part, content in parts.items():
            archive.writestr(part, content)


def result(target):
    return target.get_model()(*target.args, **target.kwargs)


def test_an_exported_program(saved):
    target = doors.load(saved)
    assert [tuple(t.shape) for t in target.args] == [(4, 8)]
    assert list(target.kwargs) == ["shift"]
    assert result(target).tolist() == [29.0] * 4
    again = model_file.export(target, target.get_model())
    assert [(int(r.lower), int(r.upper)) for r in again.range_constraints.values()] == [(2, 64)]
    assert not target.remark


def test_each_layer_has_state_of_its_own(saved):
    target = doors.load(saved)
    one, other = (model_file.export(target, None).module(check_guards=False) for _ in range(2))
    with torch.no_grad():
        one.w.zero_()
    assert other.w.sum() == 28


def test_inputs_are_invented_where_none_were_saved(tmp_path, program):
    bare = torch.export.export(Net(), (torch.ones(4, 8),), dynamic_shapes={"x": {0: torch.export.Dim.AUTO}})
    bare._example_inputs = None
    torch.export.save(bare, tmp_path / "bare.pt2")
    target = doors.load(tmp_path / "bare.pt2")
    assert "stand in" in target.remark
    assert result(target).shape == (4,)


def test_invented_inputs_have_the_exported_strides():
    class Plain(torch.nn.Module):
        def forward(self, x, k):
            return x + k

    ep = torch.export.export(Plain(), (torch.ones(3, 5).t(), torch.ones(1, dtype=torch.int32)))
    (x, k), _ = exported.invented_inputs(ep)
    assert (tuple(x.shape), x.stride()) == ((5, 3), (1, 5))
    assert k.tolist() == [0]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"schema_version": {"major": 99, "minor": 0}}, "in format 99.0; torch"),
        ({"schema_version": {"major": 8, "minor": 9999}}, "use that version of torch"),
        ({"schema_version": 3}, "is cut short or damaged"),
        ({"graph_module": {}}, "cannot be loaded by torch"),
    ],
)
def test_programs_that_this_torch_cannot_read(saved, change, says):
    edited(saved, lambda about: about.update(change))
    with pytest.raises(Unusable) as refused:
        doors.load(saved)
    assert says in str(refused.value)
    assert "\n" not in str(refused.value)


def test_an_operator_that_is_not_registered(saved):
    with zipfile.ZipFile(saved) as archive:
        text = archive.read(next(n for n in archive.namelist() if n.endswith("model.json"))).decode()
    other = json.loads(text.replace("torch.ops.aten.relu.default", "torch.ops.mine.relu.default"))
    edited(saved, lambda about: about.update(other))
    with pytest.raises(Unusable, match=r"calls mine\.relu\.default, which is not registered here"):
        doors.load(saved)


def test_options_for_model_files_only(saved):
    with pytest.raises(Unusable, match="--model and --inputs do not apply"):
        doors.load(saved, model="other")


@pytest.fixture
def launcher(tmp_path, program):
    """What DUMP_AOTI_MINIFIER=1 leaves behind."""
    folder = tmp_path / "checkpoints"
    folder.mkdir()
    text = io.StringIO()
    patches = {"aot_inductor.package": True, "cpp.simdlen": 1}
    with inductor_config.patch({"freezing": True}):
        aoti.save_graph_repro_ep(
            text, "aot_inductor", exported_program=program, config_patches=patches, save_dir=str(folder)
        )
    path = tmp_path / "minifier_launcher.py"
    path.write_text(text.getvalue())
    return path


def test_a_launcher_of_the_aoti_minifier(launcher):
    environment = dict(os.environ)
    target = doors.load(launcher)
    assert result(target).tolist() == [29.0] * 4
    assert target.config == {"cpp.simdlen": 1, "freezing": True}
    assert not inductor_config.freezing
    assert dict(os.environ) == environment


def test_a_launcher_that_has_moved_with_its_program(launcher, tmp_path):
    other = tmp_path / "elsewhere"
    other.mkdir()
    shutil.move(tmp_path / "checkpoints" / "exported_program.pt2", other)
    shutil.move(launcher, other)
    assert result(doors.load(other / launcher.name)).tolist() == [29.0] * 4
    (other / "exported_program.pt2").unlink()
    with pytest.raises(Unusable, match="lay it beside the script"):
        doors.load(other / launcher.name)


GRAPH = """
s77 = 5
import torch
class Repro(torch.nn.Module):
    def forward(self, arg0_1, arg1_1, arg2_1):
        return (torch.ops.aten.mul.Tensor(arg2_1, arg0_1).sum(1) + arg1_1,)
def load_args(reader):
    buf0 = reader.storage(None, 32)
    reader.tensor(buf0, (8,), is_leaf=True)  # arg0_1
    reader.symint(5, expr='s77')  # arg1_1
    buf1 = reader.storage(None, 32*s77)
    reader.tensor(buf1, (s77, 8), is_leaf=True)  # arg2_1
load_args._version = 0
mod = Repro()
if __name__ == '__main__':
    from torch._dynamo.repro.after_aot import run_repro
    run_repro(mod, load_args, accuracy=False, command='run', save_dir=None, tracing_mode='symbolic')
"""


def test_a_graph_script_keeps_its_dynamic_sizes(tmp_path):
    path = tmp_path / "fx_graph_runnable.py"
    path.write_text(GRAPH)
    target = doors.load(path)
    assert [tuple(t.shape) for t in target.args] == [(8,), (5, 8)]
    ep = model_file.export(target, target.get_model())
    x, w = torch.ones(7, 8), torch.ones(8)
    assert ep.module()(w, x)[0].tolist() == [15.0] * 7


def test_a_graph_script_as_torch_writes_it(tmp_path):
    class Two(torch.nn.Module):
        def forward(self, x, y):
            return (torch.ops.aten.add.Tensor(x, y),)

    args = (torch.ones(2, 3), torch.ones(3))
    text = after_aot.generate_standalone_repro(torch.fx.symbolic_trace(Two()), args)
    path = tmp_path / "repro.py"
    path.write_text(text)
    target = doors.load(path)
    assert "stand in" in target.remark
    x, y = target.args
    assert torch.equal(result(target)[0], x + y)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (GRAPH.replace("mod = Repro()", ""), "defines no `mod`"),
        (GRAPH.replace("reader.storage(None, 32)", "1 / 0"), "load_args() raises ZeroDivisionError"),
        ("import nowhere_at_all" + GRAPH, "needs the module 'nowhere_at_all'"),
    ],
)
def test_graph_scripts_that_do_not_work(tmp_path, text, says):
    path = tmp_path / "fx_graph_runnable.py"
    path.write_text(text)
    with pytest.raises(Unusable) as refused:
        doors.load(path)
    assert says in str(refused.value)


@pytest.fixture
def case_file(tmp_path, program):
    store = Store(tmp_path / "case" / "tensors")
    translated = program_from_export(program, store)
    values = [
        describe(t, Stored(store.put(name, t)))
        for name, t in (("x", torch.full((6, 8), 2.0)), ("shift", torch.zeros(1)))
    ]
    case = Case(translated, tuple(values), Settings(config=(("freezing", True),)))
    case = replace(case, earlier=(case.values,))
    path = tmp_path / "case" / "case.json"
    path.write_text(json.dumps(case_to_json(case)))
    return path


def test_a_stored_case(case_file):
    target = doors.load(case_file)
    assert result(target).tolist() == [0.0] * 4
    args, kwargs = target.module.failing_inputs()
    assert target.get_model()(*args, **kwargs).tolist() == [56.0] * 6
    assert (target.config, target.calls) == ({"freezing": True}, 2)


def test_a_case_without_its_tensors(case_file):
    shutil.rmtree(case_file.parent / "tensors")
    with pytest.raises(Unusable, match="cannot be built"):
        doors.load(case_file)


def test_a_case_without_its_operators(case_file):
    plain = json.loads(case_file.read_text())
    plain["settings"]["modules"] = ["/nowhere/ops.py"]
    case_file.write_text(json.dumps(plain))
    with pytest.raises(Unusable, match="registers its custom operators"):
        doors.load(case_file)
