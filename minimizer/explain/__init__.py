"""Explains what failing compiled models print: message → meaning, place, likely cause, next command."""
