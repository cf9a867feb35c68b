"""The commands of `callslip`, one module each."""
