"""Lengths of time as people write them: 8h, 90m, 1h30m, 3600."""

from __future__ import annotations

import re

_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0}


def seconds(text: str) -> float:
    """The number of seconds. Raises ValueError with advice.

    >>> seconds("1h30m"), seconds("90m"), seconds("3600")
    (5400.0, 5400.0, 3600.0)
    """
    wanted = text.strip().lower()
    try:
        found = float(wanted)
    except ValueError:
        if not re.fullmatch(r"(\d+(\.\d+)?[hms])+", wanted):
            raise ValueError(f"{text!r} is not a length of time; write 8h, 90m or 3600 (seconds)") from None
        found = sum(float(n) * _UNITS[unit] for n, unit in re.findall(r"([\d.]+)([hms])", wanted))
    if not 0 < found < float("inf"):
        raise ValueError(f"{text!r} is not more than no time; write 8h, 90m or 3600 (seconds)")
    return found


def words(length: float) -> str:
    """A length of time for people.

    >>> words(5400), words(59.4)
    ('1 h 30 min', '59 s')
    """
    whole = round(length)
    if whole < 60:
        return f"{whole} s"
    hours, minutes = divmod(whole // 60, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"
