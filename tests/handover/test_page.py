"""The HTML report: complete, self-contained, escaped, and readable in a real browser."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace

import pytest
from repro_cases import COND, RELU
from test_report import RECORD

from minimizer.handover.charts import reduction_svg, region_svg
from minimizer.handover.evidence import Evidence, Step
from minimizer.handover.graph_picture import MOST, graph_svg
from minimizer.handover.page import fault_in, report_html, sides
from minimizer.handover.record import Certificate
from minimizer.program import Input, Node, Program, Ref

OUTPUT = "eager    tensor([1., 2., nan])\ncompiled tensor([1., 3., nan])"
REGION = {
    "predicate": "n % 16 != 0",
    "sizes_tried": 62,
    "sizes_failing": 59,
    "symbols": ("n",),
    "fails": " ".join(str(n) for n in range(2, 64) if n % 16),
    "passes": "16 32 48",
}
STEPS = tuple(Step(nodes, ok, "halves") for nodes, ok in [(70, False), (71, True), (20, True), (2, True)])
FULL = Evidence(
    replace(
        RECORD,
        output=OUTPUT,
        region=REGION,
        kernel_repro='SOURCE = """\nfloat tmp0 = in_ptr0[i];\nout_ptr0[i] = tmp0;\n"""',
        kernel={"name": "cpp_fused_relu_0", "nodes": ["relu"], "line": "line 3: out_ptr0[i] = tmp0;"},
        neighbour="n = 16 instead of 17",
        command="aoti-minimize model.py",
        ablation=({"setting": "cpp.simdlen = 1", "result": "passes"},),
        explanation="An index is out of bounds.",
        findings=("lost error: index out of range",),
    ),
    COND,
    STEPS,
)
HOSTILE = "</script><script>document.title='sprung'</script><img src=x onerror=\"document.title='sprung'\">"


def test_everything_that_is_known_has_its_place():
    page = report_html(FULL)
    for heading in (
        "To reproduce",
        "Values",
        "Failing inputs",
        "The program that still fails",
        "In the whole program, marked",
        "Reduction",
        "What this means",
        "Kernel",
        "Error",
        "Nearest case that passes",
        "Minimality",
        "With other settings",
        "Also seen",
        "Versions",
    ):
        assert f">{heading}</h" in page
    assert "<td>cpp.simdlen = 1</td><td>passes</td>" in page
    assert '<span class="lit">out_ptr0[i] = tmp0;</span>' in page
    assert "python -m torch._inductor.compiler_bisector run python repro.py" in page


def test_what_is_not_known_has_none():
    page = report_html(Evidence(replace(RECORD, kernel=None, region=None, program=None, detail="", repro="")))
    for heading in ("Values", "The program that still fails", "Reduction", "Kernel", "Error", "To reproduce"):
        assert f"<h2>{heading}</h2>" not in page
    assert "None" not in re.sub(r"<style>.*?</style>", "", page, flags=re.DOTALL)


def test_nothing_comes_from_elsewhere():
    page = report_html(FULL)
    assert not re.search(r'(?:src|href|url)\s*[=(]\s*["\']?(?!#)', page)
    assert "<script" not in page
    assert "@import" not in page


def hostile():
    """Evidence with markup in every place that a model can fill."""
    nodes = tuple(replace(node, target=f"aten.{HOSTILE}") for node in RELU.nodes)
    program = replace(RELU, nodes=nodes, inputs=(Input(HOSTILE, RELU.inputs[0].meta),))
    certificate = (Certificate(HOSTILE, HOSTILE),)
    record = replace(
        FULL.record,
        title=HOSTILE,
        message=HOSTILE,
        figures=HOSTILE,
        repro=HOSTILE,
        output=f"eager {HOSTILE}\ncompiled {HOSTILE}",
        detail=HOSTILE,
        neighbour=HOSTILE,
        kernel={
            "name": HOSTILE,
            "nodes": [HOSTILE],
            "line": HOSTILE,
            "sanitizer": HOSTILE,
            "evidence": HOSTILE,
        },
        kernel_repro=HOSTILE,
        certificate=certificate,
        ablation=({HOSTILE: HOSTILE},),
        explanation=HOSTILE,
        native_stack=HOSTILE,
        findings=(HOSTILE,),
        command=HOSTILE,
        versions={HOSTILE: HOSTILE},
        failing_input=({"shape": [HOSTILE], "dtype": HOSTILE, "device": HOSTILE},),
        region=dict.fromkeys(("predicate", "sizes_tried", "sizes_failing"), HOSTILE)
        | {"symbols": [HOSTILE], "fails": "1 2", "passes": "3"},
        program=program,
    )
    return Evidence(record, program, (Step(1, True, HOSTILE), Step(0, True, HOSTILE)))


def test_markup_from_a_model_stays_text():
    page = report_html(hostile())
    assert "<script" not in page
    assert "<img" not in page
    assert page.count("&lt;script&gt;") > 20


@pytest.mark.parametrize(
    ("output", "differing"),
    [
        (OUTPUT, (["2."], ["3."])),
        ("eager    5\ncompiled 5", ([], [])),
        ("eager    tensor([1], dtype=torch.uint8)\ncompiled tensor([1])", ([], [])),
        (
            "eager    tensor([1], dtype=torch.uint8)\ncompiled tensor([1], dtype=torch.int64)",
            (["dtype=torch.uint8"], ["dtype=torch.int64"]),
        ),
        ("eager    tensor([True])\ncompiled tensor([False])", (["True"], ["False"])),
        ("eager    -inf\ncompiled 1e-05", (["-inf"], ["1e-05"])),
    ],
)
def test_values_side_by_side(output, differing):
    found = sides(output)
    assert tuple([p.text for p in side if p.differs] for side in found) == differing
    assert "".join(p.text for p in found[0]) == output.split("\n")[0].removeprefix("eager").strip()


@pytest.mark.parametrize("output", ["", "exit status -11", "compiled 3"])
def test_other_output_has_no_sides(output):
    assert sides(output) is None


def test_what_is_left_is_marked():
    assert fault_in(COND, replace(COND, nodes=COND.nodes[:2])) == {"a", "b"}
    renamed = replace(RELU, nodes=(replace(RELU.nodes[0], name="other", target="torch.relu"),))
    assert fault_in(COND, renamed) == {"a"}
    assert fault_in(None, RELU) == frozenset()


def chain(count):
    nodes = tuple(Node(f"n{k}", "aten.relu.default", (Ref(f"n{k - 1}" if k else "x"),)) for k in range(count))
    return Program(RELU.inputs, nodes, Ref(f"n{count - 1}"))


def test_a_large_graph_is_drawn_around_what_is_marked():
    svg = graph_svg(chain(1000), frozenset({"n500"}))
    assert svg.count("<rect") == MOST
    assert 'class="box fault"' in svg
    assert f"{1002 - MOST} more boxes are not drawn" in svg


def test_boxes_do_not_overlap():
    svg = graph_svg(COND, frozenset({"a"}))
    places = re.findall(r'<rect x="(\d+)" y="(\d+)" width="(\d+)" height="(\d+)"', svg)
    boxes = [tuple(map(int, place)) for place in places]
    assert len(boxes) == len(COND.inputs) + len(COND.nodes) + 1
    for k, (x, y, w, h) in enumerate(boxes):
        for other_x, other_y, *_ in boxes[:k]:
            assert abs(x - other_x) >= w or abs(y - other_y) >= h


def test_the_reduction_curve_goes_down_only():
    svg = reduction_svg(STEPS, 143)
    (line,) = re.findall(r'class="line" d="([^"]+)"', svg)
    heights = [float(y) for y in re.findall(r",([\d.]+)", line)]
    assert heights == sorted(heights)
    assert svg.count("<circle") == 3


@pytest.mark.parametrize("steps", [(), (Step(3, False),), (Step(3, True),)])
def test_no_curve_where_nothing_shrank(steps):
    assert reduction_svg(steps, 3) == ""


def test_a_strip_for_one_symbol_and_a_grid_for_two():
    one = [({"n": n}, n > 3) for n in range(8)]
    assert region_svg(one).count('class="fails"') == 4
    two = [({"n": n, "m": m}, n == m) for n in range(5) for m in range(4)]
    svg = region_svg(two)
    assert (svg.count('class="fails"'), svg.count('class="passes"')) == (4, 16)
    assert region_svg([({"a": 1, "b": 2, "c": k}, True) for k in range(3)]).count("<rect") == 3
    three = [({"a": k, "b": k, "c": k}, True) for k in range(3)]
    assert region_svg(three) == ""
    assert region_svg(one[:1]) == ""


@pytest.fixture(scope="module")
def browser():
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = shutil.which("chromium") or shutil.which("google-chrome") or shutil.which("chrome")
    if path is None:
        pytest.skip("no chromium on PATH")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def opened(browser, tmp_path):
    """Opens evidence in a tab without network; what it asked for and complained of is kept."""
    pages = []

    def open_(evidence, width=1200, scheme="light"):
        path = tmp_path / "report.html"
        path.write_text(report_html(evidence))
        context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
        page = context.new_page()
        page.problems = []
        page.on("request", lambda r: page.problems.append(r.url) if not r.url.startswith("file:") else None)
        page.on("console", lambda message: page.problems.append(message.text))
        page.on("pageerror", lambda error: page.problems.append(str(error)))
        page.goto(f"file://{path}")
        pages.append(context)
        return page

    yield open_
    for context in pages:
        context.close()


@pytest.mark.parametrize("width", [360, 390, 768, 1200])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_fits_the_screen_without_complaint(opened, width, scheme):
    page = opened(FULL, width, scheme)
    assert page.problems == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator("svg").count() == 4


def test_hostile_text_does_nothing_in_a_browser(opened):
    page = opened(hostile())
    page.wait_for_timeout(200)
    assert page.title() == HOSTILE
    assert page.problems == []
    assert page.locator("script, img").count() == 0


LUMINANCE = """
(element) => {
  const parts = (color) => color.match(/[\\d.]+/g).slice(0, 3).map((c) => {
    const v = c / 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; });
  const light = (color) => { const [r, g, b] = parts(color); return 0.2126*r + 0.7152*g + 0.0722*b; };
  let back = element;
  while (getComputedStyle(back).backgroundColor === 'rgba(0, 0, 0, 0)') back = back.parentElement;
  const [a, b] = [light(getComputedStyle(element).color), light(getComputedStyle(back).backgroundColor)];
  return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("what", ["h1", "p.draft", "pre", "mark", "span.lit", "dt", "th", "summary", "td"])
def test_text_can_be_read_in_both_schemes(opened, scheme, what):
    page = opened(FULL, scheme=scheme)
    assert page.locator(what).first.evaluate(LUMINANCE) >= 4.5  # WCAG 2.1, level AA
