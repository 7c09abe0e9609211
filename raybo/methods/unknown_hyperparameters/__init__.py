"""Methods for models whose hyperparameters are unknown: see docs/unknown-hyperparameters.md.

common                  what Ha et al. compare with each other: options, design, model, search
exp3                    uhe, ra-bo, exp3-random, portfolio: a bandit of two arms in the trials' tags
shorter_lengthscales    a-gp-ucb, wang-defreitas: the fit under length-scales divided by a number
"""
