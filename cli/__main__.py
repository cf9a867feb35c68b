"""`python -m cli`: the same as `callslip`."""

from cli.entry import main

main()
