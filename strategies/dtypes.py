"""Other dtypes to export the same model with.

Dtype rules are where compilers and eager part most often: a reduction that widens, a sum that wraps, a
constant that is rounded once too often. Floating inputs change together with the parameters, since a model
holds together in one precision; integer inputs change by themselves, and where they are indices eager says
which dtypes it takes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

FLOATS = ("float16", "bfloat16", "float64", "float32")
INTEGERS = ("int8", "uint8", "int16", "int32", "int64")

DtypeMap = tuple[tuple[str, str], ...]
"""Pairs of dtypes, old and new, as torch names them without the prefix."""


def wanted(text: str) -> tuple[str, ...]:
    """The dtypes that ``default``, ``wide`` or a comma-separated list of names asks for.

    Raises ValueError for a name that is not among `FLOATS` and `INTEGERS`.

    >>> wanted("float16,int8")
    ('float16', 'int8')
    """
    if text in ("", "default"):
        return ()
    if text == "wide":
        return (*FLOATS, *INTEGERS)
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    for name in names:
        if name not in (*FLOATS, *INTEGERS):
            raise ValueError(
                f"{name!r} is no dtype to export with; use default, wide or some of: "
                f"{', '.join((*FLOATS, *INTEGERS))}"
            )
    return names


def dtype_maps(inputs: Sequence[str], state: Sequence[str], names: Sequence[str]) -> Iterator[DtypeMap]:
    """Maps from the dtypes at hand to the named ones, one new dtype each, in the order of `names`.

    `inputs` and `state` are the dtypes of the inputs and of the parameters and buffers. A floating dtype
    replaces all floating ones of both, an integer all integer ones of the inputs. Maps that change nothing
    are left out.

    >>> list(dtype_maps(["float32", "int64"], ["float32"], ["float16", "int8"]))
    [(('float32', 'float16'),), (('int64', 'int8'),)]
    """
    for name in names:
        kind, present = (FLOATS, (*inputs, *state)) if name in FLOATS else (INTEGERS, tuple(inputs))
        changed = tuple((old, name) for old in dict.fromkeys(present) if old in kind and old != name)
        if changed:
            yield changed
