"""The development set, on which the default may be tuned, and the validation set, on which no setting was chosen.

They share no data set, job or task, and no function but two of BBOB, 15 and 21, in other numbers of dimensions. `SMALL`
is the part of the development set that takes minutes, and `LONG` are functions of it, and another, with budgets of 200.
`WIDE` is for many workers: every eighth function and every sixth job of the validation set, with budgets of 128. For
what takes long there are `quarter` and `eighth`, every fourth and every eighth problem of the validation set.

`independent` is what others measure on too: all 24 functions of BBOB in 2, 5 and 10 dimensions (`bbob-2d` and so on)
with 20 evaluations a dimension, every seed another instance, and the networks of HPOBench on all its eight data sets
(`hpobench`).

`trees`, `validation-trees` and `test-trees` are boosting and forests, which are judged on other splits too: for
development, for validation, and for a last look at what was chosen by both.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any

from benchmarks.default import functions, suites
from benchmarks.default.problem import Group, Problem, Task


def _job(name: str) -> Task:
    from benchmarks.default import jobs  # scikit-learn takes a second to load

    return getattr(jobs, name)()  # type: ignore[no-any-return]


def _tree_job(name: str) -> Task:
    from benchmarks.default import trees

    return trees.JOBS[name]()


def _some(group: Group, trials: int, rows: dict[str, tuple[Callable[..., Task], tuple[Any, ...]]]) -> list[Problem]:
    return [Problem(name, group, trials, partial(make, *arguments)) for name, (make, arguments) in rows.items()]


_f, _s = functions, suites

DEVELOPMENT = [
    *_some(
        "synthetic",
        60,
        {
            "bbob-f3-d3": (_s.bbob, (3, 3, 1)),
            "bbob-f8-d5": (_s.bbob, (8, 5, 2)),
            "bbob-f10-d3": (_s.bbob, (10, 3, 1)),
            "bbob-f15-d2": (_s.bbob, (15, 2, 3)),
            "bbob-f17-d5": (_s.bbob, (17, 5, 2)),
            "bbob-f20-d3": (_s.bbob, (20, 3, 2)),
            "bbob-f21-d2": (_s.bbob, (21, 2, 1)),
            "bbob-f21-d5": (_s.bbob, (21, 5, 4)),
            "hartmann6": (_f.shifted, ("hartmann6", 1)),
            "levy5": (_f.shifted, ("levy5", 2)),
            "styblinski6": (_f.styblinski_tang, (6, 3)),
            "cosine8": (_f.cosine_mixture, (8, 4)),
            "draw4": (_f.draw, (4, 0.35, 5)),
            "hartmann6-noisy": (_f.shifted, ("hartmann6", 6, 0.1)),
            "bbob-f8-d3-noisy": (_s.bbob, (8, 3, 5, 0.1)),
            "draw4-noisy": (_f.draw, (4, 0.5, 11, 0.3)),
            "kinds7-noisy": (_f.kinds, (7, 12, 0.1)),
            "logs3": (_f.undeclared_logs, (3, 7)),
            "walled4": (_f.walled, (4, 8)),
            "failing3": (_f.failing, (3, 9)),
            "kinds7": (_f.kinds, (7, 10)),
            "nested": (_f.branches, ("nested", 21)),
            "bbob-f2-d3": (_s.bbob, (2, 3, 1)),
            "bbob-f7-d5": (_s.bbob, (7, 5, 1)),
            "bbob-f7-d5-noisy": (_s.bbob, (7, 5, 3, 0.2)),
            "bbob-f11-d5": (_s.bbob, (11, 5, 1)),
            "bbob-f13-d5": (_s.bbob, (13, 5, 1)),
            "bbob-f18-d3": (_s.bbob, (18, 3, 1)),
            "bbob-f20-d5": (_s.bbob, (20, 5, 7)),
            "bbob-f20-d2-noisy": (_s.bbob, (20, 2, 4, 0.2)),
            "bbob-f23-d3": (_s.bbob, (23, 3, 1)),
            "bbob-f24-d3": (_s.bbob, (24, 3, 1)),
            "draw3-61": (_f.draw, (3, 0.2, 61)),
            "draw3-62": (_f.draw, (3, 0.25, 62)),
            "draw5": (_f.draw, (5, 0.3, 63)),
            "bbob-mixed-f8-d5": (_s.bbob_mixed, (8, 5, 1)),
            "bbob-mixed-f20-d5": (_s.bbob_mixed, (20, 5, 2)),
            "architectures5": (_f.architectures, (5, 9, 71)),
            "architectures7": (_f.architectures, (7, 4, 72)),
            "cut15": (_f.cut, (15, 73)),
            "lattice4": (_f.lattice, ((17, 9, 33, 5), 0.35, 74)),
        },
    ),
    *_some(
        "synthetic",
        100,
        {
            "bbob-f8-d10": (_s.bbob, (8, 10, 1)),
            "bbob-mixed-f3-d10": (_s.bbob_mixed, (3, 10, 1)),
            "bbob-f15-d10": (_s.bbob, (15, 10, 2)),
        },
    ),
    *_some("synthetic", 120, {"bbob-f10-d20": (_s.bbob, (10, 20, 1)), "bbob-f20-d20": (_s.bbob, (20, 20, 2))}),
    *_some(
        "jobs",
        40,
        {
            **{f"lcbench-{task}": (_s.lcbench, (task,)) for task in (7593, 34539, 126029, 167149, 168868)},
            **{f"hpobench-{name}": (_s.trained, ("HPOBench", name)) for name in ("australian", "vehicle", "kc1")},
            **{f"hpolib-{name}": (_s.trained, ("HPOLib", f"{name}")) for name in ("naval_propulsion",)},
            "hpobench-blood-choices": (_s.trained, ("HPOBench", "blood_transfusion", True)),
            "hpolib-slice-choices": (_s.trained, ("HPOLib", "slice_localization", True)),
            "svm": (_job, ("svm",)),
            "tree": (_job, ("tree",)),
            "linear": (_job, ("linear",)),
        },
    ),
]

VALIDATION = [
    *_some(
        "synthetic",
        60,
        {
            "bbob-f4-d5": (_s.bbob, (4, 5, 3)),
            "bbob-f6-d3": (_s.bbob, (6, 3, 2)),
            "bbob-f9-d5": (_s.bbob, (9, 5, 3)),
            "bbob-f12-d3": (_s.bbob, (12, 3, 1)),
            "bbob-f14-d5": (_s.bbob, (14, 5, 1)),
            "bbob-f16-d2": (_s.bbob, (16, 2, 2)),
            "bbob-f19-d3": (_s.bbob, (19, 3, 1)),
            "bbob-f22-d2": (_s.bbob, (22, 2, 3)),
            "bbob-f22-d5": (_s.bbob, (22, 5, 2)),
            "hartmann3": (_f.shifted, ("hartmann3", 31)),
            "branin": (_f.shifted, ("branin", 32)),
            "michalewicz5": (_f.michalewicz, (5,)),
            "shekel4": (_f.shekel, (33,)),
            "griewank6": (_f.griewank, (6, 34)),
            "draw3": (_f.draw, (3, 0.2, 35)),
            "draw7": (_f.draw, (7, 0.5, 36)),
            "draw6-additive": (_f.draw, (6, 0.25, 37, 0.0, True)),
            "draw5-noisy": (_f.draw, (5, 0.5, 38, 0.3)),
            "bbob-f9-d3-noisy": (_s.bbob, (9, 3, 6, 0.2)),
            "logs5": (_f.undeclared_logs, (5, 39)),
            "walled6": (_f.walled, (6, 40)),
            "failing5": (_f.failing, (5, 41)),
            "kinds9": (_f.kinds, (9, 42)),
            "kinds6-noisy": (_f.kinds, (6, 43, 0.1)),
            "plateaus4": (_f.plateaus, (4, 44)),
            "deep": (_f.branches, ("deep", 45)),
            "layers": (_f.branches, ("layers", 46)),
        },
    ),
    *_some(
        "synthetic",
        100,
        {
            "bbob-f9-d10": (_s.bbob, (9, 10, 1)),
            "bbob-f22-d10": (_s.bbob, (22, 10, 2)),
            "bbob-mixed-f15-d10": (_s.bbob_mixed, (15, 10, 2)),
            "bbob-mixed-f21-d5": (_s.bbob_mixed, (21, 5, 2)),
        },
    ),
    *_some("synthetic", 120, {"bbob-f14-d20": (_s.bbob, (14, 20, 1)), "bbob-f6-d20": (_s.bbob, (6, 20, 1))}),
    *_some(
        "jobs",
        40,
        {
            **{f"lcbench-{task}": (_s.lcbench, (task,)) for task in (3945, 146212, 168330, 189354, 167168)},
            **{f"hpobench-{name}": (_s.trained, ("HPOBench", name)) for name in ("credit_g", "phoneme", "segment")},
            **{f"hpolib-{name}": (_s.trained, ("HPOLib", name)) for name in ("protein_structure",)},
            "nasbench-cifar10": (_s.trained, ("NASBench201", "cifar10")),
            "ridge": (_job, ("ridge",)),
            "cancer-svm": (_job, ("cancer_svm",)),
        },
    ),
]

LONG = _some(
    "synthetic",
    200,
    {
        "levy20-long": (_f.levy, (20, 50)),
        "bbob-f10-d20-long": (_s.bbob, (10, 20, 1)),
        "bbob-f20-d20-long": (_s.bbob, (20, 20, 2)),
        "bbob-f8-d10-long": (_s.bbob, (8, 10, 1)),
        "bbob-f15-d10-long": (_s.bbob, (15, 10, 2)),
    },
)

WIDE = [
    replace(problem, name=f"{problem.name}-wide", trials=128)
    for problem in (
        *[problem for problem in VALIDATION if problem.group == "synthetic"][:32:8],
        *[problem for problem in VALIDATION if problem.group == "jobs"][::6],
    )
]

BBOB = {
    d: [
        Problem(f"bbob-{d}d-f{function}", "synthetic", 20 * d, partial(_s.bbob_regret, function, d), is_seeded=True)
        for function in range(1, 25)
    ]
    for d in (2, 5, 10)
}

_TRAINED = [problem for problem in (*DEVELOPMENT, *VALIDATION) if problem.name.startswith("hpobench-")]
HPOBENCH = [
    *(problem for problem in _TRAINED if not problem.name.endswith("-choices")),
    *_some("jobs", 40, {f"hpobench-{name}": (_s.trained, ("HPOBench", name)) for name in ("blood_transfusion", "car")}),
]

TREES = "xgboost-australian xgboost-diabetes extra-trees-vehicle forest-kc1 gradient-friedman lightgbm-wine".split()
VALIDATION_TREES = (
    "first-study xgboost-vehicle histogram-made forest-diabetes extra-trees-digits extra-trees-friedman "
    "lightgbm-australian"
).split()
TEST_TREES = (
    "xgboost-cancer xgboost-friedman3 lightgbm-hastie lightgbm-sparse histogram-wilt histogram-friedman2 forest-cancer "
    "forest-quantiles extra-trees-wilt extra-trees-sparse gradient-hastie gradient-friedman3"
).split()
OF_TREES, OF_VALIDATION_TREES, OF_TEST_TREES = (
    _some("jobs", 50, {name: (_tree_job, (name,)) for name in names}) for names in (TREES, VALIDATION_TREES, TEST_TREES)
)

SMALL = (
    "bbob-f3-d3 bbob-f8-d5 bbob-f17-d5 bbob-f21-d5 hartmann6 styblinski6 cosine8 hartmann6-noisy logs3 walled4 kinds7 "
    "bbob-mixed-f3-d10 lcbench-7593 lcbench-34539 lcbench-126029 hpobench-australian hpobench-vehicle"
).split()

SETS = {
    "development": DEVELOPMENT,
    "validation": VALIDATION,
    "quarter": VALIDATION[::4],
    "eighth": VALIDATION[::8],
    "long": LONG,
    "wide": WIDE,
    **{f"bbob-{d}d": problems for d, problems in BBOB.items()},
    "hpobench": HPOBENCH,
    "trees": OF_TREES,
    "validation-trees": OF_VALIDATION_TREES,
    "test-trees": OF_TEST_TREES,
    "independent": [*chain(*BBOB.values()), *HPOBENCH],
    "small": [problem for problem in DEVELOPMENT if problem.name in SMALL],
}
PROBLEMS = {
    problem.name: problem
    for problem in (
        *(*DEVELOPMENT, *VALIDATION, *LONG, *WIDE, *HPOBENCH, *chain(*BBOB.values())),
        *(*OF_TREES, *OF_VALIDATION_TREES, *OF_TEST_TREES),
    )
}
