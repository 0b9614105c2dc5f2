"""How much more two workers of a night do than one: the same units of generated programs, by the clock.

Wall time on a shared machine is noise: run it on an idle one, and more than once.
"""

import tempfile
import time
from pathlib import Path

from minimizer.nightly.hands import LocalHands
from minimizer.nightly.units import Programs


def arguments(parser):
    """The options of this benchmark."""
    parser.add_argument("--units", type=int, default=4, help="units of work (default: 4)")
    parser.add_argument("--programs", type=int, default=40, help="programs in a unit (default: 40)")
    parser.add_argument("--workers", type=int, default=2, help="workers to compare with one (default: 2)")


def main(given):
    """Print the figures; status 0."""
    took = {}
    for workers in (1, given.workers):
        with tempfile.TemporaryDirectory() as folder:
            took[workers], judged = _night(workers, given, Path(folder))
        rate = 60 * judged / took[workers]
        print(f"{workers} at once   {took[workers]:7.1f} s   {rate:6.1f} programs a minute")
    print(f"ratio       {took[1] / took[given.workers]:7.2f}")
    return 0


def _night(workers, given, folder):
    """Seconds for all units, and programs judged."""
    hands = LocalHands(workers, folder / "units")
    started, judged = time.monotonic(), 0
    for k in range(given.units):
        first = k * given.programs
        hands.give(Programs(first, given.programs, 0, str(folder / "programs")))
    while hands.busy:
        for _, events in hands.take(60.0):
            judged += sum(event.get("judged", 0) for event in events)
    took = time.monotonic() - started
    hands.stop()
    return took, judged
