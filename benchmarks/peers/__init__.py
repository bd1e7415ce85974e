"""Contestants that are not ours; each is run in the virtual environment of its library."""
