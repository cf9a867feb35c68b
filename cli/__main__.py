"""`python -m callslip.cli`: the same as `callslip`."""

from callslip.cli.entry import main

main()
