"""Connections to what people already use.

Ray Tune
    ray_tune        raybo as a search algorithm
    tune_points     configurations as Tune's users write them
    tune_results    a trial's steps and end as Tune reports them
    tune_limit      how many trials may run
    tune_state      what a search saves
Optuna
    optuna          raybo as a sampler
    optuna_spaces   the space that a study's trials show
    optuna_trials   Optuna's trials as a history
scikit-learn
    sklearn         raybo as a search
    sklearn_batches scikit-learn's parts of a search, batch by batch
    joblib_tasks    what scikit-learn runs in parallel, as Ray tasks
    sklearn_steps   estimators as jobs that report
Launchers of several processes
    launch          a command inside a trial, whose ranks report
    process_tree    ends all processes that come of a command
Trainers: callbacks that report
    xgboost         XGBoost
    lightgbm        LightGBM
    lightning       Lightning
    keras           Keras
    transformers    the Trainer of Hugging Face
    skorch          skorch
    trainer_reports what those that stop when they are asked to share
Agents
    agents          studies in a folder, asked and told within limits
    mcp             the same by the Model Context Protocol
Ray jobs on a cluster
    jobs            a study as a job: submitted, followed, stopped, fetched
    dashboard       reaching the cluster
    package         which files of a directory go there
    transfer        how a journal goes there and back
Exports
    export          the available formats, and keeping one up to date while a study runs
    text_files      CSV and JSON
    study_json      a study as JSON
    stream          what is new of a study, for programs that follow it
    trial_terms     a trial in other programs' terms
    optuna_journal  for Optuna's viewers
    tensorboard     TensorBoard
    mlflow          MLflow
    wandb           Weights & Biases
"""
