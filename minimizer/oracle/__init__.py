"""Judges a case: passes, fails (and how), means nothing, or was used outside its contract."""
