"""Methods for results that depend on a context nobody chooses: see docs/contexts.md.

`over_contexts` is what they share: options, design, model, search.
"""
