"""aoti-minimize: from "my compiled model is wrong" to a minimal, deterministic, kernel-level repro."""

__version__ = "0.1.0"
