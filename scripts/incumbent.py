"""PyTorch's own AOTI minifier on one model file, run as its documentation says, its oracle calls counted.

    python scripts/incumbent.py MODEL.py '{"inductor": "config"}' accuracy|error

The model is compiled with the minifier's dump switched on, then the dumped ``minifier_launcher.py`` is run,
in the current folder. For each oracle call a line is printed: ``ORACLE calls=N fails=0|1``, N operator calls.
"""

import contextlib
import importlib.util
import json
import runpy
import sys
from pathlib import Path

import torch
import torch._inductor
from torch._inductor import config as inductor_config

ACCURACY, ERRORS = 4, 2
"""Values of ``AOTINDUCTOR_REPRO_LEVEL``."""


def load(path):
    sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location("target", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def dump(target, config, level):
    """Compile the model with the minifier on, which writes the launcher when that fails."""
    shapes = target.get_dynamic_shapes() if hasattr(target, "get_dynamic_shapes") else None
    own = target.get_inductor_configs() if hasattr(target, "get_inductor_configs") else {}
    program = torch.export.export(target.get_model(), target.get_example_inputs(), dynamic_shapes=shapes)
    inductor_config.aot_inductor.dump_aoti_minifier = True
    inductor_config.aot_inductor.repro_level = level
    with contextlib.suppress(Exception):  # the failure that is to be minified
        torch._inductor.aoti_compile_and_package(program, inductor_configs={**own, **config})
    inductor_config.aot_inductor.dump_aoti_minifier = False
    return max(Path.cwd().rglob("minifier_launcher.py"), key=lambda path: path.stat().st_mtime, default=None)


def counted(compile_and_run):
    """The oracle of the minifier, telling what it is asked and what comes of it."""

    def oracle(gm, *args, **kwargs):
        calls = sum(node.op == "call_function" for node in gm.graph.nodes)
        fails = 1
        try:
            found = compile_and_run(gm, *args, **kwargs)
            fails = 0
            return found
        finally:
            print(f"ORACLE calls={calls} fails={fails}", flush=True)

    return oracle


def main(path, config, kind):
    launcher = dump(load(path), config, ACCURACY if kind == "accuracy" else ERRORS)
    if launcher is None:
        print("NOTHING DUMPED", flush=True)
        return
    torch._inductor._aoti_compile_and_package_inner = counted(torch._inductor._aoti_compile_and_package_inner)
    sys.argv = [str(launcher)]
    runpy.run_path(str(launcher), run_name="__main__")
    print("DONE", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), json.loads(sys.argv[2]), sys.argv[3])
