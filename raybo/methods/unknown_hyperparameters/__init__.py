"""Methods for models whose hyperparameters are unknown: see docs/unknown-hyperparameters.md.

common                  options, design, model and search that the methods of Ha et al. share
exp3                    uhe, ra-bo, exp3-random, portfolio: a bandit of two arms in the trials' tags
shorter_lengthscales    a-gp-ucb, wang-defreitas: the fit under length-scales divided by a number
"""
