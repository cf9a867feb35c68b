"""Commands that work on whole collections: their options, facets, memory and moves."""
