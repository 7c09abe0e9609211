"""Methods for many dimensions, which search locally: see docs/many-dimensions.md.

iterations      gibo, mpd, min-ucb, la-min-ucb, ars: the current iteration, read from tags
local_search    the first four of these: options, the model of a window, exploration, the safest move
"""
