from raybo.integrations.optuna import RayboSampler

__all__ = ["RayboSampler"]
