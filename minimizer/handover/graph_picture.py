"""A program's graph as an SVG drawing: calls in layers from top to bottom, the ones at fault marked.

The layers are those of Sugiyama's method: a call lies below everything that it reads, and within a layer the
order follows the mean place of what is read (barycentre heuristic), swept down and up a few times.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from markupsafe import Markup, escape

from minimizer.program import Program, TensorMeta

if TYPE_CHECKING:
    import networkx as nx

MOST = 120
"""Boxes in one drawing; of larger graphs only the surroundings of what is marked are drawn."""

WIDTH, HEIGHT, GAP_X, GAP_Y = 168, 34, 16, 30
"""Of a box and between boxes, in pixels."""

LETTERS = 23
"""Letters that fit in a box."""

SWEEPS = 4


@dataclass(frozen=True)
class Box:
    """One box: what it says, in which style, and what is told on pointing at it."""

    label: str
    below: str
    style: str
    title: str


def graph_svg(program: Program, marked: frozenset[str] = frozenset()) -> Markup:
    """The drawing; `marked` are names of calls to be drawn as at fault."""
    graph, boxes = _graph(program, marked)
    drawn = _surroundings(graph, boxes, marked)
    left_out = len(boxes) - len(drawn)
    places = _places(graph.subgraph(drawn).copy())
    width = max((x for x, _ in places.values()), default=0.0) + WIDTH + GAP_X
    height = max((y for _, y in places.values()), default=0.0) + HEIGHT + GAP_Y
    parts = [
        f'<svg class="graph" role="img" aria-label="graph of {len(program.operators)} calls" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}">'
    ]
    for source, target in graph.edges:
        if source in places and target in places:
            parts.append(_edge(places[source], places[target]))
    parts += [_box(boxes[name], *places[name]) for name in places]
    parts.append("</svg>")
    if left_out:
        parts.append(f'<p class="aside">{left_out} more boxes are not drawn.</p>')
    return Markup("".join(parts))


def _graph(program: Program, marked: frozenset[str]) -> tuple[nx.DiGraph, dict[str, Box]]:
    import networkx as nx  # late: it takes longer to import than most commands take

    graph = nx.DiGraph()
    boxes: dict[str, Box] = {}
    for i in program.inputs:
        boxes[i.name] = Box(i.name, _meta(i.meta), "input", f"input {i.name}: {_meta(i.meta)}")
    for s in program.state:
        boxes[s.name] = Box(s.name, _meta(s.meta), "state", f"{s.kind} {s.name}: {_meta(s.meta)}")
    for node in program.nodes:
        said = _meta(node.meta) if isinstance(node.meta, TensorMeta) else ""
        where = f" ({node.where})" if getattr(node, "where", "") else ""
        style = "fault" if node.name in marked else "call"
        boxes[node.name] = Box(_short(node.target), said, style, f"{node.name} = {node.target}{where} {said}")
    boxes["output "] = Box("output", "", "input", "output")  # no name of a value has a space in it
    graph.add_nodes_from(boxes)
    for node in program.nodes:
        graph.add_edges_from((name, node.name) for name in node.inputs if name in boxes)
    graph.add_edges_from((name, "output ") for name in program.outputs if name in boxes)
    return graph, boxes


def _surroundings(graph: nx.DiGraph, boxes: Mapping[str, Box], marked: frozenset[str]) -> list[str]:
    """All boxes, or those nearest to the marked ones (to the output when none is marked)."""
    if len(boxes) <= MOST:
        return list(boxes)
    import networkx as nx

    start = [name for name in boxes if name in marked] or ["output "]
    distance = nx.multi_source_dijkstra_path_length(graph.to_undirected(as_view=True), start)
    near = sorted((name for name in boxes if name in distance), key=lambda name: distance[name])
    return near[:MOST]


def _places(graph: nx.DiGraph) -> dict[str, tuple[float, float]]:
    """The upper left corner of each box."""
    import networkx as nx

    if not nx.is_directed_acyclic_graph(graph):  # only a damaged case has such a program
        graph.remove_edges_from(list(graph.edges))
    layers = [list(layer) for layer in nx.topological_generations(graph)]
    _lower_sources(graph, layers)
    for sweep in range(SWEEPS):
        down = sweep % 2 == 0
        order = {name: k for layer in layers for k, name in enumerate(layer)}
        for layer in layers if down else reversed(layers):
            near = graph.predecessors if down else graph.successors
            layer.sort(key=lambda name: _mean([order[n] for n in near(name)], order[name]))
            order.update({name: k for k, name in enumerate(layer)})
    widest = max((len(layer) for layer in layers), default=0)
    places = {}
    for level, layer in enumerate(layers):
        indent = (widest - len(layer)) / 2
        for k, name in enumerate(layer):
            places[name] = (
                GAP_X / 2 + (k + indent) * (WIDTH + GAP_X),
                GAP_Y / 2 + level * (HEIGHT + GAP_Y),
            )
    return places


def _lower_sources(graph: nx.DiGraph, layers: list[list[str]]) -> None:
    """Move what reads nothing down to just above its first reader, so that edges stay short."""
    level = {name: k for k, layer in enumerate(layers) for name in layer}
    for name in list(layers[0]) if layers else []:
        readers = [level[n] for n in graph.successors(name)]
        if readers and min(readers) > 1:
            layers[0].remove(name)
            layers[min(readers) - 1].append(name)
    layers[:] = [layer for layer in layers if layer]


def _mean(numbers: Sequence[int], default: float) -> float:
    return sum(numbers) / len(numbers) if numbers else default


def _edge(source: tuple[float, float], target: tuple[float, float]) -> str:
    x1, y1 = source[0] + WIDTH / 2, source[1] + HEIGHT
    x2, y2 = target[0] + WIDTH / 2, target[1]
    bend = max(12.0, (y2 - y1) / 2)
    return (
        f'<path class="edge" d="M{x1:.0f},{y1:.0f} C{x1:.0f},{y1 + bend:.0f} {x2:.0f},{y2 - bend:.0f} '
        f'{x2:.0f},{y2:.0f}"/>'
    )


def _box(box: Box, x: float, y: float) -> str:
    middle = x + WIDTH / 2
    corner = HEIGHT / 2 if box.style == "input" else 4
    first = y + (HEIGHT / 2 - 2 if box.below else HEIGHT / 2 + 4)
    texts = f'<text x="{middle:.0f}" y="{first:.0f}">{escape(_cut(box.label))}</text>'
    if box.below:
        below = escape(_cut(box.below, LETTERS + 5))
        texts += f'<text class="small" x="{middle:.0f}" y="{y + HEIGHT - 6:.0f}">{below}</text>'
    return (
        f'<g class="box {box.style}"><title>{escape(box.title)}</title>'
        f'<rect x="{x:.0f}" y="{y:.0f}" width="{WIDTH}" height="{HEIGHT}" rx="{corner:.0f}"/>{texts}</g>'
    )


def _cut(text: str, letters: int = LETTERS) -> str:
    return text if len(text) <= letters else text[: letters - 1] + "…"


def _short(target: str) -> str:
    return target.removesuffix(".default").removeprefix("aten.").removeprefix("torch.nn.functional.")


def _meta(meta: TensorMeta) -> str:
    return f"{meta.dtype}[{', '.join(str(size) for size in meta.shape)}]"
