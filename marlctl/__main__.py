"""`python -m marlctl` is `marlctl`."""

from marlctl.cli import main

main()
