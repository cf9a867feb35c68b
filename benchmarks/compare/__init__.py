"""Two commits in turns, figure by figure."""
