"""The only place that starts processes: a warm zygote, workers forked from it, and what became of them."""

from minimizer.sandbox.pool import Died, Sandbox, TaskError, TimedOut, Worker, WorkerLost

__all__ = ["Died", "Sandbox", "TaskError", "TimedOut", "Worker", "WorkerLost"]
