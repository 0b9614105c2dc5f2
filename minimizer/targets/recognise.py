"""What kind of thing a person brought, told by its content and not by its name. Executes nothing.

What cannot be used is answered in one line that says what it is and what to bring instead.
"""

from __future__ import annotations

import json
import pickletools
import zipfile
from dataclasses import dataclass
from pathlib import Path

from minimizer.options import Unusable
from minimizer.stored import CASE_PLACES

MODEL_FILE, EXPORTED, PACKAGE, LAUNCHER, GRAPH_SCRIPT, CASE = (
    "model file",
    "exported program",
    "AOTI package",
    "minifier launcher",
    "graph script",
    "stored case",
)

BRING = "a Python file with get_model() and get_example_inputs(), or a program saved with torch.export.save"

_HEAD = 1 << 16
_PLAIN_PICKLE = ("torch._utils ", "torch ", "collections ", "torch.storage ", "torch._tensor ")
_WRITERS = {"torch._dynamo.repro.aoti": LAUNCHER, "torch._dynamo.repro.after_": GRAPH_SCRIPT}
"""What the scripts that PyTorch writes import in their last lines."""


@dataclass(frozen=True)
class Door:
    """A target that can be opened: its kind, and the file to open."""

    kind: str
    path: Path


def recognise(path: Path) -> Door:
    """Tell what a path holds. Raises Unusable."""
    if not path.exists():
        raise Unusable(f"{path} does not exist; give the path of {BRING}")
    if path.is_dir():
        return _folder(path)
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD)
    except OSError as problem:
        raise Unusable(f"{path} cannot be read: {problem.strerror}") from None
    if path.suffix == ".py":
        return _script(path)
    if not head:
        raise Unusable(f"{path.name} is empty; give {BRING}")
    if head.startswith(b"PK\x03\x04") or zipfile.is_zipfile(path):
        return _archive(path)
    if head.startswith(b"\x7fELF"):
        return Door(PACKAGE, path)
    if head.lstrip().startswith(b"{"):
        return _json(path)
    raise Unusable(f"{path.name} is {_named(path, head)}; give {BRING}")


def _folder(path: Path) -> Door:
    for place in CASE_PLACES:
        if (path / place).is_file():
            return Door(CASE, path / place)
    launchers = sorted(path.glob("**/minifier_launcher.py"))[:1]
    hint = f" ({launchers[0]}, for one)" if launchers else ""
    raise Unusable(f"{path} is a folder without a stored case; give the path of a model file in it{hint}")


def _script(path: Path) -> Door:
    text = path.read_text(encoding="utf-8", errors="replace")
    if "get_model" in text:
        return Door(MODEL_FILE, path)
    for writer, kind in _WRITERS.items():
        if f"from {writer}" in text and "run_repro(" in text:
            return Door(kind, path)
    if "def test_fn() -> bool" in text and any((path.parent / place).is_file() for place in CASE_PLACES):
        raise Unusable(f"{path} is a repro that was written here; give its folder {path.parent} instead")
    return Door(MODEL_FILE, path)


def _json(path: Path) -> Door:
    try:
        plain = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        plain = None
    if isinstance(plain, dict) and {"program", "values", "settings"} <= plain.keys():
        return Door(CASE, path)
    raise Unusable(f"{path.name} is not a stored case; give {BRING}")


def _archive(path: Path) -> Door:
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            inside = {name.partition("/")[2] for name in names}
            if any(name.startswith("models/") and name.endswith(".json") for name in inside):
                return Door(EXPORTED, path)
            if "serialized_exported_program.json" in names:
                return Door(EXPORTED, path)
            if any(name.startswith("data/aotinductor/") for name in inside):
                return Door(PACKAGE, path)
            if any(name.endswith(".wrapper.cpp") or name.endswith(".wrapper.so") for name in names):
                return Door(PACKAGE, path)
            raise Unusable(_other_archive(path, archive, names))
    except (zipfile.BadZipFile, OSError, EOFError, ValueError):
        raise Unusable(f"{path.name} is cut short or damaged; copy it again, or save it again") from None


def _other_archive(path: Path, archive: zipfile.ZipFile, names: list[str]) -> str:
    if any("/code/" in name for name in names):
        return (
            f"{path.name} is a TorchScript archive, which AOTInductor does not compile; "
            "give a Python file with get_model() that builds the model itself"
        )
    pickled = next((name for name in names if name.endswith("/data.pkl")), None)
    if pickled is not None:
        owner = _class_in(archive.read(pickled))
        what = f"a pickled {owner}, and nothing is unpickled here" if owner else "weights without a program"
        return f"{path.name} is {what}; give a Python file with get_model() that loads it"
    if any(Path(name).name == "case.json" for name in names):
        return f"{path.name} is a bundle; unpack it and give its folder"
    return f"{path.name} is a zip archive without a program in it; give {BRING}"


def _class_in(pickled: bytes) -> str:
    """The class of the first object in a pickle that is no tensor and no plain container; "" for none."""
    strings: list[str] = []
    try:
        for opcode, argument, _ in pickletools.genops(pickled):
            if opcode.name == "GLOBAL" and not str(argument).startswith(_PLAIN_PICKLE):
                return str(argument).replace(" ", ".")
            if opcode.name == "STACK_GLOBAL" and len(strings) >= 2:
                module, name = strings[-2:]
                if not f"{module} ".startswith(_PLAIN_PICKLE):
                    return f"{module}.{name}"
            if isinstance(argument, str):
                strings.append(argument)
    except (ValueError, IndexError):
        return ""
    return ""


def _named(path: Path, head: bytes) -> str:
    """What a file that is no archive and no script seems to be."""
    if path.suffix == ".onnx" or b"onnx" in head[:400] or b"\x12\x07pytorch" in head[:400]:
        return "an ONNX model, which does not lead back to a PyTorch program"
    if path.suffix == ".safetensors" or head[8:9] == b"{":
        return "a file of tensors without a program"
    if head[:1] == b"\x80":
        return "a pickle, and nothing is unpickled here"
    if b"\0" in head:
        return "not a file of a known kind"
    return "not a .py file"
