"""wang-defreitas: expected improvement with length-scales that are cut once the search has become too sure of itself.

Wang and de Freitas (2014), and two rivals of it, by the option `variant`:

bounds       "bounds": Algorithm 1
slice        "slice": the rival of the paper's example, which samples the length-scales
least_std    "kappa": what Ha et al., arXiv:2306.06844, compare with under these names
improvement  what the first two share: the model within bounds, and the improvement over the mean's maximum
"""

from raybo.methods.unknown_hyperparameters.wang_defreitas.options import WangDeFreitas

__all__ = ["WangDeFreitas"]
