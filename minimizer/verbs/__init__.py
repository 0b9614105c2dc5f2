"""What the command can be asked to do: one file for each verb, listed in `table`."""
