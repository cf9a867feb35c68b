"""`python -m cli`: the same as `callslip`."""

from cli.main import main

main()
