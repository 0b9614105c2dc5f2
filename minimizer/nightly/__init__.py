"""A corpus that is replayed and fuzzed every night, with generated programs beside it."""
