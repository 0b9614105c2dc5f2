"""Front doors: one file for each kind of thing that a person brings."""
