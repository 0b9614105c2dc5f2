"""The repro of last resort: the person's own model, with the inputs on which it fails.

Used where the graph cannot be expressed as a program of ours, or does not fail by itself. It is longer than a
repro should be, and says so, but it shows the bug alone like any other.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from minimizer.case import Case
from minimizer.handover.needs import DEATHS, ERRORS, loses_error
from minimizer.oracle.verdict import Failure
from minimizer.source import literal
from minimizer.variant import AS_WRITTEN, Variant

_HEAD = '''"""{title}.

The whole model: its graph could not be reduced. Needs the folder repro_files and
repro_inputs.pt beside it.
"""

{modules}
from pathlib import Path

import torch
from torch.utils import _pytree as pytree

sys.path.insert(0, str(Path(__file__).with_name("repro_files")))
import repro_target

CONFIG = {config}


def given(name, other, default):
    found = getattr(repro_target, name, None)
    return found() if callable(found) else getattr(repro_target, other, default)


def failing_inputs():
    """The model's arguments: those to export it with, and those of every call up to the failing one."""
    example = {inputs}
    args = example if isinstance(example, (tuple, list)) else (example,)
    kwargs = given("get_example_kwargs", "example_kwargs", {{}})
    flat, spec = pytree.tree_flatten((tuple(args), kwargs))
    path = Path(__file__).with_name("repro_inputs.pt")
    saved = torch.load(path, weights_only=True)
    places = [k for k, x in enumerate(flat) if isinstance(x, torch.Tensor)]

    def with_tensors(prefix):
        changed = {{at: saved.get(f"{{prefix}}{{k}}", flat[at]) for k, at in enumerate(places)}}
        return pytree.tree_unflatten([changed.get(k, x) for k, x in enumerate(flat)], spec)

    return with_tensors("example "), [with_tensors(f"call {{k}} ") for k in range({calls})]


def compile_model(model, example):
    backend = os.environ.get("TORCH_COMPILE_BACKEND", "{backend}")
    if backend == "eager":
        return model
    if backend != "aoti":
        return torch.compile(model, backend=backend, dynamic=True, options=CONFIG)
{program}
    path = torch._inductor.aoti_compile_and_package(program, inductor_configs=CONFIG){first_load}
    return torch._inductor.aoti_load_package(path)


@torch.no_grad()
def check() -> bool:
    torch.manual_seed(0)
    model = {model}{cast}
    example, calls = failing_inputs()
{body}
'''

_CAST = """
    model._apply(lambda t: t.to(torch.{new}) if t.dtype == torch.{old} else t)"""
_EXPORTED_HERE = """\
    dims = given("get_dynamic_shapes", "dynamic_shapes", None)
    program = torch.export.export(model, *example, dynamic_shapes=dims)"""
_EXPORTED_BEFORE = "    program = repro_target.exported_program"

PROGRAM_FILE = "program.pt2"
PROGRAM_TARGET = f'''"""The program as it was exported."""

from pathlib import Path

import torch

exported_program = torch.export.load(Path(__file__).with_name("{PROGRAM_FILE}"))
model = exported_program.module(check_guards=False)
example_inputs, example_kwargs = exported_program.example_inputs
'''
"""Stands in for a model file where the person brought a program that was exported already."""

_CHILD = """

def test_fn() -> bool:
    job = subprocess.Popen([sys.executable, __file__, "child"], start_new_session=True)
    try:
        return job.wait(timeout={timeout}) {test}
    except subprocess.TimeoutExpired:
        os.killpg(job.pid, signal.SIGKILL)
        print("still running after {timeout} s")
        return {hang_ok}


if __name__ == "__main__":
    raise SystemExit(not check() if "child" in sys.argv else not test_fn())
"""

_DIRECT = """

def test_fn() -> bool:
    return check()


if __name__ == "__main__":
    raise SystemExit(not test_fn())
"""

_COMPARE = """    compiled, eager = compile_model(model, example), copy.deepcopy(model)
    for inputs in {calls}:
        mine, theirs = copy.deepcopy(inputs), copy.deepcopy(inputs)
        expected = (eager(*mine[0], **mine[1]), mine)
        actual = (compiled(*theirs[0], **theirs[1]), theirs)
        print(f"eager    {{expected[0]}}\\ncompiled {{actual[0]}}")
        pairs = [pytree.tree_leaves(side) for side in (actual, expected)]
        try:
            torch.testing.assert_close(*pairs, {limits}equal_nan=True)
        except AssertionError as error:
            print(error)
            return False
    return True
"""
_THREADS = """    compiled, eager = compile_model(model, example), copy.deepcopy(model)
    asked = [copy.deepcopy(calls[k % len(calls)]) for k in range(10)]
    expected = [eager(*args, **kwargs) for args, kwargs in copy.deepcopy(asked)]
    with ThreadPoolExecutor({threads}) as pool:
        actual = list(pool.map(lambda call: compiled(*call[0], **call[1]), asked))
    pairs = [pytree.tree_leaves(side) for side in (actual, expected)]
    try:
        torch.testing.assert_close(*pairs, {limits}equal_nan=True)
    except AssertionError as error:
        print(error)
        return False
    return True
"""
_SHARING = """    sides = [], []
    functions = copy.deepcopy(model), compile_model(model, example)
    for inputs in calls:
        for side, function in zip(sides, functions):
            args, kwargs = copy.deepcopy(inputs)
            leaves = pytree.tree_leaves((args, kwargs, function(*args, **kwargs)))
            side += [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
    shared = []
    for side in sides:
        memory = [one.untyped_storage().data_ptr() for one in side]
        shared.append({(i, memory.index(m)) for i, m in enumerate(memory)})
    print(f"eager    {shared[0]}\\ncompiled {shared[1]}")
    return shared[1] <= shared[0]
"""
_ERROR = """    eager = copy.deepcopy(model)
    for inputs in calls:
        mine = copy.deepcopy(inputs)
        print("eager   ", eager(*mine[0], **mine[1]))
    try:
        compiled = compile_model(model, example)
        for inputs in {calls}:
            theirs = copy.deepcopy(inputs)
            compiled(*theirs[0], **theirs[1])
    except Exception as error:  # noqa: BLE001
        print("compiled", repr(error)[:300])
        return False
    return True
"""
_LOST = """    raised = []
    for function in (copy.deepcopy(model), compile_model(model, example)):
        try:
            for inputs in calls:
                mine = copy.deepcopy(inputs)
                print(function(*mine[0], **mine[1]))
            raised.append(False)
        except Exception as error:  # noqa: BLE001
            print(repr(error)[:300])
            raised.append(True)
    return raised != [True, False]  # eager raises, compiled does not
"""
_DEATH = """    compiled = compile_model(model, example)
    for inputs in {calls}:
        mine = copy.deepcopy(inputs)
        compiled(*mine[0], **mine[1])
    return True
"""
_FIRST_LOAD = """
    args, kwargs = copy.deepcopy(example)
    first = torch._inductor.aoti_load_package(path)
    first(*args, **kwargs)  # what is loaded next answers otherwise"""
_MODULES = ("copy", "os", "signal", "subprocess", "sys")


def _body(failure: Failure, manner: str) -> str:
    """The statements that judge: by the kind of failure and the manner of calling (`case.MANNERS`)."""
    if loses_error(failure):
        return _LOST.rstrip("\n")
    if failure.kind == "wrong_aliasing":
        return _SHARING.rstrip("\n")
    body = _COMPARE
    if manner in ("thread", "threads"):
        body = _THREADS
    elif failure.kind in ERRORS:
        body = _ERROR
    elif failure.kind in DEATHS | {"hang"}:
        body = _DEATH
    calls = "calls + 10 * calls[-1:]" if manner == "again" else "calls"
    limits = "check_stride=True, " if failure.flavour == "stride" else ""
    return body.format(calls=calls, limits=limits, threads=2 if manner == "threads" else 1).rstrip("\n")


def whole_source(
    failure: Failure,
    case: Case,
    title: str,
    versions: Mapping[str, str],
    names: Any,
    timeout: int,
    *,
    exported: bool = False,
    variant: Variant = AS_WRITTEN,
) -> str:
    """The script's text. `names` has `model` and `inputs`: other givers of the model file than the usual.

    `exported` tells that `PROGRAM_TARGET` stands in for a model file; of a `variant` that exports the model
    otherwise, the example inputs are read from the file of tensors too.
    """
    body = _body(failure, case.settings.manner)
    model = f"repro_target.{names.model}" if names.model else 'given("get_model", "model", None)'
    inputs = (
        f"repro_target.{names.inputs}"
        if names.inputs
        else 'given("get_example_inputs", "example_inputs", ())'
    )
    if names.model:
        model = f"({model}() if callable({model}) and not isinstance({model}, torch.nn.Module) else {model})"
    if names.inputs:
        inputs = f"({inputs}() if callable({inputs}) else {inputs})"
    version = versions.get("torch", "")
    config = "{" + ", ".join(f"{literal(key)}: {literal(value)}" for key, value in case.settings.config) + "}"
    hang = failure.kind == "hang"
    tail = _DIRECT
    if hang or failure.kind in DEATHS:
        tail = _CHILD.format(timeout=timeout, test="== 0" if hang else ">= 0", hang_ok=not hang)
    first_load = _FIRST_LOAD if case.settings.manner == "reload" else ""
    used = [name for name in _MODULES if f"{name}." in _HEAD + first_load + body + tail]
    imports = [f"import {name}" for name in used]
    imports += ["from concurrent.futures import ThreadPoolExecutor"] if "ThreadPoolExecutor(" in body else []
    head = _HEAD.format(
        title=title + (f" (torch {version})" if version else ""),
        modules="\n".join(imports),
        first_load=first_load,
        config=config,
        program=_EXPORTED_BEFORE if exported else _EXPORTED_HERE,
        inputs=inputs,
        model=model,
        body=body,
        backend=case.settings.path,
        cast="".join(_CAST.format(old=old, new=new) for old, new in variant.dtypes),
        calls=len(case.sequence),
    )
    return head + tail
