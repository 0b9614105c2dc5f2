"""Hypothesis strategies that describe the inputs of a compiled PyTorch program.

They draw descriptions (sizes of dynamic dimensions, kinds of fill), never tensor elements, and need neither
torch nor the rest of this project. `opening` is where to start; `draws` goes on from there. `arrangements`,
`dtype_maps` and the table in `strategies.settings` describe what a program can be exported and compiled with.

>>> first = next(opening([Symbol("n", 2, 64, hint=8)], [("float32", Role())]))
>>> first.size_of, first.fills[0].kind
({'n': 8}, 'normal')
"""

from strategies.dtypes import dtype_maps
from strategies.inputs import OPENING, Draw, Spec, draws, opening
from strategies.layouts import Layout, arrangements, telling_layouts
from strategies.sizes import CAP, Fits, Symbol, interesting_sizes, reclip, sizes, sweep
from strategies.values import (
    KINDS,
    ROLES,
    SEEDED,
    Fill,
    Role,
    assignments,
    fills,
    is_out_of_range,
    telling_fills,
)

__all__ = [
    "CAP",
    "KINDS",
    "OPENING",
    "ROLES",
    "SEEDED",
    "Draw",
    "Fill",
    "Fits",
    "Layout",
    "Role",
    "Spec",
    "Symbol",
    "arrangements",
    "assignments",
    "draws",
    "dtype_maps",
    "fills",
    "interesting_sizes",
    "is_out_of_range",
    "opening",
    "reclip",
    "sizes",
    "sweep",
    "telling_fills",
    "telling_layouts",
]
