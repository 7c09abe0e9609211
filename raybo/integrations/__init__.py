"""Where raybo meets what people already use: Ray Tune, scikit-learn, Optuna's viewers, TensorBoard, MLflow."""
