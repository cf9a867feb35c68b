"""Fitting the weights of a ranking on questions with known answers."""
