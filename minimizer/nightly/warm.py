"""Imported once, by the zygote of a night: what every sandbox imports, and the operator database."""

import minimizer.nightly.catalogue
import minimizer.nightly.pool_tasks
import minimizer.oracle.warm  # noqa: F401  (imported for the workers, as all here)
