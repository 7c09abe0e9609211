"""What several methods share; none of these files is a method.

options                   an option of a method: its field, its checks, and its value from text
hyperparameters           the option `hyperparameters`
design                    where to look before there is a model
apart                     points that must not be proposed again, and how far to stay from each
model                     from a history to a fitted surrogate
refits                    which trials a fit is made for, and where it starts
random_grid               gp-ucb and gp-ts: schedules of exploration and of the grid
unknown_hyperparameters   the methods that Ha et al. compare: design, model, search
exp3                      uhe, ra-bo, exp3-random, portfolio: a bandit of two arms in the trials' tags
shorter_lengthscales      a-gp-ucb and wang-defreitas: the fit under length-scales divided by a number
iterations                gibo, mpd, min-ucb, la-min-ucb, ars: where an iteration stands, read from tags
local_search              the first four of these: options, the model of a window, exploration, the safest move
over_contexts             the methods over contexts: design, model, search
"""
