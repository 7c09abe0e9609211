"""Where raybo meets what people already use.

Ray Tune
    ray_tune        its search algorithm
    tune_points     configurations as its users write them
    tune_results    what it says of a trial's end
    tune_state      what such a search saves
scikit-learn
    sklearn         its search
    joblib_tasks    what it runs in parallel, as Ray tasks
    sklearn_steps   its estimators as jobs that report
XGBoost
    xgboost         a callback that reports
Ray jobs on a cluster
    jobs            a study as a job: submitted, followed, stopped, fetched
    dashboard       reaching the cluster
    package         what of a directory goes there
    travel          how a journal goes there and back
Exports
    export          the forms that there are; CSV and JSON
    trial_terms     a trial in the terms that other programs have
    optuna_journal  for Optuna's viewers
    tensorboard     TensorBoard
    mlflow          MLflow
"""
