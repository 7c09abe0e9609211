"""Building blocks that methods of several families share."""
