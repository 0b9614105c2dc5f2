"""The charts of the report as SVG: how the program shrank, and which sizes fail."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from markupsafe import Markup, escape

from minimizer.handover.evidence import Step

WIDTH, HEIGHT = 640, 220
_LEFT, _RIGHT, _TOP, _BOTTOM = 48, 12, 12, 34

Tried = tuple[Mapping[str, int], bool]
"""Sizes that were tried, by symbol, and whether they fail."""


def reduction_svg(steps: Sequence[Step], before: int | None) -> Markup:
    """Calls of the smallest failing program so far over candidates judged; "" without candidates."""
    if not any(step.accepted and step.nodes < (before or step.nodes + 1) for step in steps):
        return Markup("")
    best = before if before is not None else max(step.nodes for step in steps)
    most = max(best, 1)
    x_scale = (WIDTH - _LEFT - _RIGHT) / len(steps)
    y_scale = (HEIGHT - _TOP - _BOTTOM) / most

    def at(k: float, nodes: float) -> str:
        return f"{_LEFT + k * x_scale:.1f},{HEIGHT - _BOTTOM - nodes * y_scale:.1f}"

    line, dots = [f"M{at(0, best)}"], []
    for k, step in enumerate(steps, 1):
        line.append(f"L{at(k, best)}")
        if step.accepted and step.nodes < best:
            best = step.nodes
            line.append(f"L{at(k, best)}")
            x, _, y = at(k, best).partition(",")
            title = escape(f"candidate {k}, {step.name}: {best} calls")
            dots.append(f'<circle cx="{x}" cy="{y}" r="3.5"><title>{title}</title></circle>')
    marks = [
        _tick(_LEFT - 6, HEIGHT - _BOTTOM - nodes * y_scale + 4, nodes, "end")
        + f'<path class="grid" d="M{at(0, nodes)} L{at(len(steps), nodes)}"/>'
        for nodes in _ticks(most)
    ]
    marks += [_tick(_LEFT + k * x_scale, HEIGHT - _BOTTOM + 16, k, "middle") for k in _ticks(len(steps))]
    label = (
        f'<text class="tick" x="{WIDTH - _RIGHT}" y="{HEIGHT - 4}" text-anchor="end">candidates judged</text>'
    )
    return Markup(
        f"{_opened('calls left over candidates judged', WIDTH, HEIGHT)}{''.join(marks)}"
        f'<path class="line" d="{" ".join(line)}"/>'
        f'<g class="dots">{"".join(dots)}</g>{label}</svg>'
    )


def _opened(label: str, width: float, height: float) -> str:
    """The opening tag of a chart: drawn at its own size, so that its words stay readable on any screen."""
    return (
        f'<svg class="chart" role="img" aria-label="{label}" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'width="{width:.0f}" height="{height:.0f}">'
    )


def _tick(x: float, y: float, said: object, anchor: str) -> str:
    return f'<text class="tick" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(said)}</text>'


def _ticks(most: int) -> list[int]:
    """A few round numbers from 0 to `most`.

    >>> _ticks(13)
    [0, 5, 10]
    """
    step = next(s * 10**e for e in range(12) for s in (1, 2, 5) if most / (s * 10**e) <= 5)
    return list(range(0, most + 1, step))


def region_svg(tried: Sequence[Tried]) -> Markup:
    """The sizes tried, failing and passing: a strip for one symbol, a grid for two; "" for others."""
    symbols = sorted({name for sizes, _ in tried for name in sizes})
    symbols = [s for s in symbols if len({sizes.get(s) for sizes, _ in tried}) > 1] or symbols[:1]
    if len(symbols) not in (1, 2) or len(tried) < 2:
        return Markup("")
    across = symbols[0]
    down = symbols[1] if len(symbols) == 2 else None
    columns = sorted({sizes[across] for sizes, _ in tried if across in sizes})
    rows = sorted({sizes[down] for sizes, _ in tried if down in sizes}, reverse=True) if down else [0]
    cell = max(4.0, min(18.0, (WIDTH - _LEFT - _RIGHT) / len(columns)))
    tall = cell if down else 26.0
    cells = {(sizes[across], sizes[down] if down else 0): fails for sizes, fails in tried if across in sizes}
    parts = []
    for (column, row), fails in cells.items():
        x, y = _LEFT + columns.index(column) * cell, _TOP + rows.index(row) * tall
        said = f"{across} = {column}" + (f", {down} = {row}" if down else "")
        parts.append(
            f'<rect class="{"fails" if fails else "passes"}" x="{x:.1f}" y="{y:.1f}" '
            f'width="{cell - 1:.1f}" height="{tall - 1:.1f}">'
            f"<title>{escape(said)}: {'fails' if fails else 'passes'}</title></rect>"
        )
    bottom = _TOP + len(rows) * tall
    for column in _spread(columns, int(cell * len(columns) // 40)):
        x = _LEFT + (columns.index(column) + 0.5) * cell
        parts.append(
            f'<text class="tick" x="{x:.1f}" y="{bottom + 13:.1f}" text-anchor="middle">{column}</text>'
        )
    if down:
        for row in _spread(rows, int(tall * len(rows) // 18)):
            y = _TOP + (rows.index(row) + 0.5) * tall + 4
            parts.append(_tick(_LEFT - 6, y, row, "end"))
    axis = f"{across} →" + (f"   {down} ↑" if down else "")
    parts.append(_tick(_LEFT, bottom + 28, axis, "start"))
    width = max(_LEFT + len(columns) * cell + _RIGHT, 160)
    return Markup(f"{_opened('sizes that fail', width, bottom + 34)}{''.join(parts)}</svg>")


def _spread(values: Sequence[int], count: int) -> list[int]:
    """At most `count` of the values, evenly spread, the ends among them."""
    if len(values) <= max(count, 2):
        return list(values)
    last = len(values) - 1
    return sorted({values[round(k * last / (max(count, 2) - 1))] for k in range(max(count, 2))})
