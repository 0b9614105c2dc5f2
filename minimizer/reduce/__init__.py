"""Making a failing case smaller: cuts, passes, the search over them, and the proof that nothing is left."""
