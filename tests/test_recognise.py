"""What a person brought is told by its content; what cannot be used is answered in one line."""

import json
import pickle
import zipfile

import pytest

from minimizer.options import Unusable
from minimizer.targets.recognise import (
    CASE,
    EXPORTED,
    GRAPH_SCRIPT,
    LAUNCHER,
    MODEL_FILE,
    PACKAGE,
    recognise,
)


def archive(path, **files):
    with zipfile.ZipFile(path, "w") as made:
        for name, content in files.items():
            made.writestr(name.replace("__", "/"), content)
    return path


def packed(path, names):
    return archive(path, **{name.replace("/", "__"): b"x" for name in names})


CASE_TEXT = json.dumps({"program": {}, "values": [], "settings": {}})


@pytest.mark.parametrize(
    ("name", "text", "kind"),
    [
        ("model.py", "def get_model(): ...", MODEL_FILE),
        ("empty.py", "", MODEL_FILE),
        ("anything.py", "from torch._dynamo.repro.aoti import run_repro\nrun_repro(ep)", LAUNCHER),
        (
            "anything.py",
            "from torch._dynamo.repro.after_aot import run_repro\nrun_repro(m, a)",
            GRAPH_SCRIPT,
        ),
        ("x.py", "from torch._dynamo.repro.after_dynamo import run_repro\nrun_repro(mod, a)", GRAPH_SCRIPT),
        ("mine.py", "# from torch._dynamo.repro.aoti import run_repro\ndef get_model(): ...", MODEL_FILE),
        ("case.json", CASE_TEXT, CASE),
        ("renamed.pt2", CASE_TEXT, CASE),
        ("lib.so", "\x7fELF...", PACKAGE),
    ],
)
def test_texts(tmp_path, name, text, kind):
    path = tmp_path / name
    path.write_text(text, encoding="latin-1")
    door = recognise(path)
    assert (door.kind, door.path) == (kind, path)


@pytest.mark.parametrize(
    ("names", "kind"),
    [
        (["prog/models/model.json", "prog/archive_format"], EXPORTED),
        (["prog/models/model.json", "prog/data/aotinductor/model/a.so"], EXPORTED),
        (["serialized_exported_program.json", "version"], EXPORTED),
        (["pkg/data/aotinductor/model/a.wrapper.so"], PACKAGE),
        (["data/aotinductor/model/a.wrapper.so", "a.wrapper.cpp"], PACKAGE),
    ],
)
@pytest.mark.parametrize("name", ["x.pt2", "x.pt", "x"])
def test_archives(tmp_path, names, kind, name):
    assert recognise(packed(tmp_path / name, names)).kind == kind


@pytest.mark.parametrize("place", ["case.json", "case/case.json", "case/reduced/case.json"])
def test_folders_with_a_case(tmp_path, place):
    file = tmp_path / place
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(CASE_TEXT)
    assert recognise(tmp_path).path == file


class Weights:
    """Stands in for a class of the person's own."""


def pickled(of):
    return pickle.dumps(of, protocol=2)


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("e.pt2", b"", "e.pt2 is empty; give a Python file with get_model()"),
        ("a.txt", b"some words", "a.txt is not a .py file"),
        ("a.json", b'{"program": 1}', "a.json is not a stored case"),
        ("a.json", b'{"program": ', "a.json is not a stored case"),
        ("a.pkl", pickled({"w": 1}), "a.pkl is a pickle, and nothing is unpickled here"),
        ("m.onnx", b"\x08\x07\x12\x07pytorch\x1a\x05", "m.onnx is an ONNX model"),
        ("m.bin", b"\x08\x07\x12\x07pytorch\x1a\x05", "m.bin is an ONNX model"),
        ("w.safetensors", b"\x40\0\0\0\0\0\0\0{", "w.safetensors is a file of tensors without a program"),
        ("w.bin", b"\x40\0\0\0\0\0\0\0{", "w.bin is a file of tensors without a program"),
        ("x.pt2", b"\x12\x00\x01binary", "x.pt2 is not a file of a known kind"),
        ("x.pt2", b"PK\x03\x04 and then it ends", "x.pt2 is cut short or damaged"),
    ],
)
def test_what_cannot_be_used(tmp_path, name, content, says):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(Unusable) as refused:
        recognise(tmp_path / name)
    assert says in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ({"m__code____torch.py": "", "m__data.pkl": b""}, "is a TorchScript archive"),
        ({"w__data.pkl": pickled({"w": 1.0})}, "is weights without a program"),
        ({"w__data.pkl": pickled(Weights())}, "is a pickled tests.test_recognise.Weights"),
        ({"b__case__case.json": CASE_TEXT}, "is a bundle; unpack it and give its folder"),
        ({"notes.txt": "hello"}, "is a zip archive without a program in it"),
    ],
)
def test_archives_that_cannot_be_used(tmp_path, files, says):
    with pytest.raises(Unusable) as refused:
        recognise(archive(tmp_path / "file.pt", **files))
    assert says.replace("tests.test_recognise", Weights.__module__) in str(refused.value)


def test_a_pickle_is_looked_at_and_not_executed(tmp_path):
    class Trap:
        def __reduce__(self):
            return (open, (str(tmp_path / "sprung"), "w"))

    with pytest.raises(Unusable, match="is a pickled io.open"):
        recognise(archive(tmp_path / "file.pt", x__data__pkl=b"", **{"w__data.pkl": pickled(Trap())}))
    assert not (tmp_path / "sprung").exists()


def test_folders_without_a_case(tmp_path):
    with pytest.raises(Unusable, match="is a folder without a stored case"):
        recognise(tmp_path)
    launcher = tmp_path / "minifier" / "minifier_launcher.py"
    launcher.parent.mkdir()
    launcher.write_text("")
    with pytest.raises(Unusable, match=r"minifier_launcher\.py, for one"):
        recognise(tmp_path)


def test_a_repro_of_ours_points_to_its_folder(tmp_path):
    (tmp_path / "case").mkdir()
    (tmp_path / "case" / "case.json").write_text(CASE_TEXT)
    (tmp_path / "repro.py").write_text("def test_fn() -> bool: ...")
    with pytest.raises(Unusable, match="give its folder"):
        recognise(tmp_path / "repro.py")


def test_nothing_there(tmp_path):
    with pytest.raises(Unusable, match="does not exist"):
        recognise(tmp_path / "missing.pt2")
