"""Whole logs: the cause first, each message once, at its line, whatever surrounds it."""

import io
import re

import hypothesis.strategies as st
from generated_code import PROVENANCE, TRITON, WRAPPER
from hypothesis import given, settings

from minimizer.explain import render
from minimizer.explain.generated import parse_generated
from minimizer.explain.router import FAMILIES, LONGEST_LINE, PIECE, search_stream, search_text
from minimizer.explain.traced import with_code

ASSERTION = (
    "unknown:0: unknown: block: [{b},0,0], thread: [5,0,0] Assertion `index out of bounds: 0 <= "
    "tmp3 < ks0` failed."
)
LATER = "RuntimeError: CUDA error: an illegal memory access was encountered"
TRIGGERED = "RuntimeError: CUDA error: device-side assert triggered"


def names(text):
    return [f.explanation.name for f in search_text(text)]


def test_the_assertion_comes_before_the_error_that_it_leads_to():
    text = f"{LATER}\n{TRIGGERED}\n{ASSERTION.format(b=1)}"
    assert names(text)[0] == "device-side assertion"
    assert set(names(text)[1:]) == {"CUDA: illegal memory access", "CUDA: device-side assertion"}


def test_a_misleading_warning_comes_last():
    text = (
        "Loading outdated pt2 file. Please regenerate your package.\nRuntimeError: Failed to initialize "
        "zip archive: x"
    )
    assert names(text) == ["not a package", "'outdated' warning"]


def test_a_thousand_threads_are_one_message():
    text = "\n".join(ASSERTION.format(b=k) for k in range(30)) + "\n" + ASSERTION.format(b=3)
    (found,) = search_text(text)
    assert found.count == 31 and found.line == 1


def test_colours_and_ranks_before_lines_do_not_matter():
    text = f"\x1b[31m[rank3]: {TRIGGERED}\x1b[0m\n[rank3]: {ASSERTION.format(b=2)}"
    assert names(text) == ["device-side assertion", "CUDA: device-side assertion"]


def test_line_numbers_and_counts_across_pieces():
    filler = "nothing to see here, step 12345 of many more to come\n"
    lines = 3 * PIECE // len(filler)
    text = filler * lines + LATER + "\n" + filler * lines + LATER + "\n"
    (found,) = search_stream(io.StringIO(text))
    assert (found.line, found.count) == (lines + 1, 2)


def test_a_message_in_the_overlap_of_two_pieces_counts_once():
    filler = "x" * 99 + "\n"
    for before in range(PIECE // 100 - 3, PIECE // 100 + 3):
        text = filler * before + ASSERTION.format(b=1) + "\n" + filler * (PIECE // 100)
        (found,) = search_stream(io.StringIO(text))
        assert (found.line, found.count) == (before + 1, 1)


def test_endless_lines_are_cut_and_the_rest_is_read():
    text = "y" * (2 * PIECE) + "\n" + LATER + "\n"
    (found,) = search_stream(io.StringIO(text))
    assert found.explanation.name == "CUDA: illegal memory access"
    assert LONGEST_LINE < PIECE


def test_unknown_text_is_unknown():
    assert search_text("Epoch 3: loss 0.1\nall went well, index out of range in line 3 of a novel") == []


def test_every_family_is_found_by_its_words_only():
    assert len({family.name for family in FAMILIES}) == len(FAMILIES)
    assert all(family.words for family in FAMILIES)


FRAGMENTS = sorted({word for family in FAMILIES for word in family.words}) + [
    *(
        "=========",
        "     at 0x1 in k",
        " of size 4 bytes",
        "block: [1,0,0], thread: [2,0,0]",
        "` failed.",
        "0 <= tmp1 < ",
    ),
    *(
        "ks0",
        "[ before_launch: k ]",
        "[  after_launch - k - buf0  ]:",
        "Mean value: nan",
        "==7==ERROR: ",
        "#1 0x2 in ",
    ),
    *(
        "/a/b.kernel.cpp:3:4: error: x",
        "LoweringException: AssertionError: y",
        "  target: aten.relu.default",
        "\n",
        "\n",
        " ",
    ),
    *(
        "_handles[0]: unmatched dtype, expected: ",
        "6(at::kFloat), but got: 7",
        "Saved tensor to /t/before_launch_k_b_cpu.pt",
    ),
    *("9" * 30, "(" * 40, "\x1b[31m", "\x00", "'''", "async_compile.triton('k', "),
]


@settings(max_examples=300, deadline=None, database=None)
@given(st.lists(st.sampled_from(FRAGMENTS) | st.text(max_size=12), max_size=30))
def test_parsers_never_raise(parts):
    found = search_text("".join(parts))
    generated = parse_generated([TRITON + "".join(parts), WRAPPER], PROVENANCE)
    traced = [with_code(f, generated) for f in found]
    for shown in (render.as_text(traced, everything=True), render.as_markdown(traced), render.as_text(found)):
        assert isinstance(shown, str)
    assert len(render.as_json(traced, "x")["explanations"]) == len(found)


@settings(max_examples=100, deadline=None, database=None)
@given(st.text(st.sampled_from("=-#:[]()<>`'\"/0123456789 \nabx,.*+"), max_size=400))
def test_code_that_is_no_code_is_read_too(text):
    parse_generated([text, WRAPPER.replace("(", text[:3])], {})


def test_commands_are_printed_whole():
    text = render.as_text(search_text(LATER))
    for command in search_text(LATER)[0].explanation.next:
        assert re.search(rf"^  (?:next|then) +{re.escape(command)}$", text, re.M)
