"""One target, several artifacts: the ways to export and compile it that a person could have chosen.

The strides and dtypes of the example inputs, Inductor's options and the compile path are fixed when a
program is compiled, so each choice is an artifact of its own. A variant only describes the choice; a worker
applies it to the model file, and everything after that is as for any other target.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, zip_longest

from minimizer.case import Value
from minimizer.program import Program
from strategies.dtypes import DtypeMap, dtype_maps
from strategies.layouts import Layout, arrangements
from strategies.settings import Config, settings

PATHS = ("aoti", "inductor")
"""AOTInductor, and ``torch.compile`` with Inductor."""

LAYOUTS = {
    "none": (),
    "common": ("channels last", "transposed", "sliced"),
    "wide": ("channels last", "transposed", "sliced", "rows", "reversed", "expanded", "shifted", "odd ones"),
}
"""Kinds of layout by level."""


@dataclass(frozen=True)
class Variant:
    """How a target is exported and compiled, where it differs from what the person wrote.

    `layouts` has one entry for each tensor input (None: as it is), or none at all; `dtypes` are pairs of
    dtypes, old and new; `config` are Inductor options; `path` is one of `PATHS`.
    """

    layouts: tuple[Layout | None, ...] = ()
    dtypes: DtypeMap = ()
    config: Config = ()
    path: str = "aoti"

    @property
    def exports_anew(self) -> bool:
        """Whether the exported program is another one, not only what is compiled from it."""
        return any(self.layouts) or bool(self.dtypes)

    def in_words(self, names: Sequence[str]) -> str:
        """What differs, for a person to read; `names` are those of the tensor inputs.

        >>> Variant(config=(("freezing", True),)).in_words(())
        'freezing=True'
        """
        parts = ["torch.compile"] if self.path == "inductor" else []
        kinds: dict[str, list[str]] = {}
        for name, layout in zip(names, self.layouts, strict=False):
            if layout is not None:
                kinds.setdefault(layout.kind, []).append(name)
        parts += [f"{', '.join(of)} {kind}" for kind, of in kinds.items()]
        parts += [f"{old} as {new}" for old, new in self.dtypes]
        parts += [f"{key}={value}" for key, value in self.config]
        return "; ".join(parts) or "as written"


AS_WRITTEN = Variant()
"""What the person wrote, on the default path."""


@dataclass(frozen=True)
class Wanted:
    """Which variants a person asks for: a level or names of each kind, as on the command line."""

    layouts: str = "common"
    dtypes: tuple[str, ...] = ()
    settings: str = "default"
    path: str = "aoti"

    @property
    def asks(self) -> bool:
        """Whether the person asks for more than the program as written and what is tried anyway."""
        return self != Wanted(path=self.path) or self.path == "both"

    @property
    def base(self) -> Variant:
        """The artifact that is searched first and longest."""
        return Variant(path="inductor" if self.path == "inductor" else "aoti")


def variants(
    wanted: Wanted, program: Program, examples: Sequence[Value], state: Sequence[str], config: Config
) -> Iterator[Variant]:
    """The variants to try, cheapest first: the other compile path, then layouts, dtypes and settings in turn.

    The layouts that are tried anyway come after the dtypes and settings that were asked for. `state` holds
    the dtypes of the parameters and buffers, `config` the options that are set already.
    """
    if wanted.path == "both":
        yield Variant(path="inductor")
    base = wanted.base
    shapes = [value.shape for value in examples]
    as_written = {k: value.stride for k, value in enumerate(examples)}
    laid_out = (
        replace(base, layouts=move)
        for move in arrangements(shapes, LAYOUTS[wanted.layouts])
        if any(one and one.strides(shapes[k]) != as_written[k] for k, one in enumerate(move))
    )
    cast = (
        replace(base, dtypes=found)
        for found in dtype_maps([i.meta.dtype for i in program.inputs], state, wanted.dtypes)
    )
    configured = (replace(base, config=found) for found in settings(wanted.settings, taken=config))
    first, last = ((laid_out,), ()) if wanted.layouts != Wanted.layouts else ((), (laid_out,))
    for turn in chain(zip_longest(*first, cast, configured), zip_longest(*last)):
        yield from (variant for variant in turn if variant is not None)
