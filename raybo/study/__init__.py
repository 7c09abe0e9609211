"""A whole study, from its journal: what its users ask of it."""
