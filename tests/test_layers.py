"""One direction of imports: a module imports from its own floor's package or from floors below."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

FLOORS = [
    ["strategies"],
    [
        "symbolic",
        "layout",
        "fold",
        "roll",
        "program",
        "liveness",
        "source",
        "case",
        "variant",
        "console",
        "options",
        "growth",
        "sequential",
        "region",
        "probing",
        "roles",
        "explain",
    ],
    [
        "sandbox",
        "equipment",
        "contract",
        "tensors",
        "build",
        "interpret",
        "tensor_code",
        "exported_sizes",
        "tracing",
        "reduce",
    ],
    ["targets", "folder", "stored"],
    ["oracle"],
    ["capture", "input_space", "fuzz", "steady", "blame", "wording"],
    ["brought", "outside", "prosecutor", "ablation"],
    ["suspects"],
    ["waiting", "narrow", "neighbour", "mapping", "stuck", "pinpoint", "verify", "debug_ladder"],
    ["handover"],
    ["run", "capturing", "reducing", "handing", "kernel_alone", "exploring", "devices", "diagnosis"],
    ["doctor", "packaged", "bundle", "versions", "buckets"],
    ["corpus"],
    ["nightly"],
    ["verbs"],
    ["cli"],
]
FLOOR = {name: level for level, names in enumerate(FLOORS) for name in names}

ALONE = {
    "strategies": {"strategies"},
    "reduce": {"strategies", "symbolic", "program", "liveness", "source", "case", "reduce"},
    "sandbox": {"sandbox"},
}
"""Packages that may know only these."""

TORCH_FREE = [
    "devices",
    "probing",
    "buckets",
    "corpus",
    "nightly/night",
    "nightly/hand",
    "nightly/hands",
    "nightly/pooling",
    "nightly/joining",
    "nightly/outputs",
    "variant",
    "exploring",
    "symbolic",
    "program",
    "liveness",
    "source",
    "case",
    "contract",
    "region",
    "roles",
    "input_space",
    "fuzz",
    "capture",
    "steady",
    "narrow",
    "prosecutor",
    "suspects",
    "sequential",
    "run",
    "capturing",
    "reducing",
    "handing",
    "cli",
    "verbs",
    "reduce",
    "handover",
    "strategies",
    "sandbox/pool",
    "oracle/case_bench",
    "oracle/losses",
    "oracle/target_bench",
    "oracle/batches",
    "oracle/requests",
    "oracle/verdict",
    "folder",
    "packaged",
    "bundle",
    "versions",
    "stored",
    "targets/recognise",
    "targets/package",
    "verify",
    "mapping",
    "stuck",
    "pinpoint",
    "kernel_alone",
    "oracle/kernels",
    "oracle/recorded",
    "growth",
    "blame",
    "ablation",
    "debug_ladder",
    "diagnosis",
    "wording",
    "explain",
    "brought",
    "waiting",
    "outside",
]
"""What the main process runs: it decides, and never touches a tensor."""


def modules():
    for path in [*ROOT.glob("minimizer/**/*.py"), *ROOT.glob("strategies/*.py")]:
        inside = path.relative_to(ROOT)
        name = inside.parts[1].removesuffix(".py") if inside.parts[0] == "minimizer" else "strategies"
        if name != "__init__":
            yield pytest.param(path, name, id=str(inside))


def imported(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            names = (
                [node.module] if node.module != "minimizer" else [f"minimizer.{a.name}" for a in node.names]
            )
        elif isinstance(node, ast.Import):
            names = [a.name for a in node.names]
        else:
            continue
        yield from names


def top(name):
    parts = name.split(".")
    return "strategies" if parts[0] == "strategies" else parts[1] if len(parts) > 1 else ""


def ours(path):
    return {top(n) for n in imported(path) if n.split(".")[0] in ("minimizer", "strategies")} - {
        "__version__",
        "",
    }


@pytest.mark.parametrize(("path", "name"), list(modules()))
def test_imports_go_down(path, name):
    assert name in FLOOR, f"{name} has no floor: add it to FLOORS"
    too_high = {other for other in ours(path) if other != name and FLOOR[other] > FLOOR[name]}
    assert not too_high


@pytest.mark.parametrize(("path", "name"), [m for m in modules() if m.values[1] in ALONE])
def test_some_packages_know_little(path, name):
    assert ours(path) <= ALONE[name] | {name}


@pytest.mark.parametrize("name", TORCH_FREE)
def test_the_main_process_needs_no_torch(name):
    base = ROOT / ("strategies" if name == "strategies" else f"minimizer/{name}")
    paths = list(base.glob("*.py")) if base.is_dir() else [base.with_suffix(".py")]
    assert paths
    for path in paths:
        assert not [n for n in imported(path) if n.split(".")[0] == "torch"], path
