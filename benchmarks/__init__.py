"""Speed of marlctl, beside the libraries people use today. `python -m benchmarks --help` tells how.

Modules under `ours` and `peers` are contestants: each runs in a process of its own, and those under
`peers` in a virtual environment where neither marlctl's requirements nor typer are there.
"""
