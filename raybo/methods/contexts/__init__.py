"""Methods for results that depend on a context nobody chooses: what docs/contexts.md tells of.

`over_contexts` is what they share: options, design, model, search.
"""
