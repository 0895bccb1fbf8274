"""`python -m lorimer`."""

from lorimer.cli.main import main

main()
