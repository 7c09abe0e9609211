"""The laboratory of the default method: is a change of `auto` worth it, and how does it stand beside its peers?

python -m benchmarks.default --help

problem     what a problem is
functions, suites, jobs     where problems come from
sets        the development set and the validation set
variants, peers     what can be run on them
runs        one run, and the CSV file that keeps all
score       regrets, differences in pairs, intervals
"""
