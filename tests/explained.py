"""For tests of messages: what is said of one."""

from minimizer.explain.router import search_text


def only(text):
    """The explanation of the first message, and its places."""
    found = search_text(text)
    assert found, text
    return found[0].explanation, dict(found[0].explanation.where)
