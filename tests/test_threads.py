"""Waiting for threads that still run."""

import hashlib
import threading

from minimizer.oracle.threads import settle


def test_a_thread_that_runs_is_waited_for():
    begun, done = threading.Event(), threading.Event()

    def work():
        begun.set()
        hashlib.pbkdf2_hmac("sha256", b"word", b"salt", 300_000)  # without the interpreter lock
        done.set()

    thread = threading.Thread(target=work)
    thread.start()
    begun.wait()
    assert settle(60.0)
    thread.join(0.5)
    assert done.is_set()


def test_one_that_sleeps_is_not():
    wake = threading.Event()
    thread = threading.Thread(target=wake.wait)
    thread.start()
    assert settle(60.0)
    assert thread.is_alive()
    wake.set()


def test_one_that_never_rests_is_left_alone():
    stop = threading.Event()

    def work():
        while not stop.is_set():
            hashlib.pbkdf2_hmac("sha256", b"word", b"salt", 50_000)

    thread = threading.Thread(target=work)
    thread.start()
    rested = settle(0.2)
    stop.set()
    thread.join()
    assert not rested
