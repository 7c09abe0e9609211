"""Methods for results that depend on an uncontrolled context: see docs/contexts.md.

`over_contexts` holds what they share: options, design, model, search.
"""
