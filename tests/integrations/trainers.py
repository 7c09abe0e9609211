"""Small trainings with the trainers that raybo has callbacks for: each returns the trainer's own metric of its epochs.

Rows are not shuffled, so that a training that continues from a checkpoint has the curve of one that nobody disturbed.
`after(epoch)` is called after the epoch has been reported.
"""

from __future__ import annotations

import importlib
import os
import tempfile

import numpy as np

os.environ.setdefault("KERAS_BACKEND", "torch")
METRICS = {
    "lightning": "val_loss",
    "keras": "val_loss",
    "transformers": "eval_loss",
    "lightgbm": "l2",
    "skorch": "valid_loss",
}


def train(trainer, epochs, after=None, rate=0.05, **more):
    """Train, and return the metric of each epoch that this training ran; `more` is for the callback."""
    integration = importlib.import_module(f"raybo.integrations.{trainer}")
    arguments = ("valid", "l2") if trainer == "lightgbm" else (METRICS[trainer],)
    callback = integration.Report(*arguments, **more)
    return globals()[f"_{trainer}"](epochs, callback, after or (lambda epoch: None), rate, integration)


def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((96, 4)).astype(np.float32)
    y = (X @ np.array([1.0, -2.0, 0.5, 0.0]) + 0.1 * rng.standard_normal(96)).astype(np.float32)[:, None]
    return X[:64], y[:64], X[64:], y[64:]


def _tensors():
    import torch

    torch.manual_seed(0)
    torch.set_num_threads(1)
    X, y, X_valid, y_valid = (torch.from_numpy(each) for each in data())
    return torch, torch.utils.data.TensorDataset(X, y), torch.utils.data.TensorDataset(X_valid, y_valid)


def _lightning(epochs, callback, after, rate, integration):
    import lightning

    torch, rows, validation = _tensors()
    seen = []

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(4, 1)

        def loss(self, batch):
            return torch.nn.functional.mse_loss(self.layer(batch[0]), batch[1])

        def training_step(self, batch, number):
            return self.loss(batch)

        def validation_step(self, batch, number):
            self.log("val_loss", self.loss(batch))

        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters(), lr=rate)

    class After(lightning.Callback):
        def on_train_epoch_end(self, trainer, pl_module):
            seen.append(float(trainer.callback_metrics["val_loss"]))
            after(trainer.current_epoch + 1)

    with tempfile.TemporaryDirectory() as directory:
        trainer = lightning.Trainer(
            max_epochs=epochs,
            accelerator="cpu",
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            default_root_dir=directory,
            callbacks=[callback, After()],
        )
        loaders = [torch.utils.data.DataLoader(each, batch_size=16) for each in (rows, validation)]
        trainer.fit(Module(), *loaders, ckpt_path=integration.going_on())
    return seen


def _keras(epochs, callback, after, rate, integration):
    import keras

    X, y, X_valid, y_valid = data()
    keras.utils.set_random_seed(0)
    seen = []

    class After(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            seen.append(float(logs["val_loss"]))
            after(epoch + 1)

    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
    model.compile(keras.optimizers.Adam(rate), "mse")
    model.fit(
        X, y, batch_size=16, epochs=epochs, shuffle=False, verbose=0, validation_data=(X_valid, y_valid),
        callbacks=[callback, After()],
    )  # fmt: skip
    return seen


def _transformers(epochs, callback, after, rate, integration):
    import transformers

    torch, rows, validation = _tensors()
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    seen = []

    class Rows(torch.utils.data.Dataset):
        def __init__(self, rows):
            self.rows = rows

        def __len__(self):
            return len(self.rows)

        def __getitem__(self, number):
            return dict(zip(("x", "labels"), self.rows[number], strict=True))

    class Regression(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(4, 1)

        def forward(self, x, labels=None):
            predicted = self.layer(x)
            return {"loss": torch.nn.functional.mse_loss(predicted, labels), "logits": predicted}

    class Unshuffled(transformers.Trainer):
        def _get_train_sampler(self, *arguments):
            return torch.utils.data.SequentialSampler(self.train_dataset)

    class After(transformers.TrainerCallback):
        def on_evaluate(self, args, state, control, metrics=None, **kwargs):
            seen.append(float(metrics["eval_loss"]))

        def on_save(self, args, state, control, **kwargs):
            after(round(state.epoch))

    with tempfile.TemporaryDirectory() as directory:
        settings = transformers.TrainingArguments(
            directory,
            num_train_epochs=epochs,
            per_device_train_batch_size=16,
            learning_rate=rate,
            lr_scheduler_type="constant",
            eval_strategy="epoch",
            save_strategy="epoch",
            logging_strategy="no",
            report_to=[],
            disable_tqdm=True,
            use_cpu=True,
            dataloader_pin_memory=False,
        )
        trainer = Unshuffled(
            Regression(), settings, train_dataset=Rows(rows), eval_dataset=Rows(validation),
            callbacks=[callback, After()],
        )  # fmt: skip
        trainer.train(resume_from_checkpoint=integration.going_on())
    return seen


def _lightgbm(epochs, callback, after, rate, integration):
    import lightgbm

    X, y, X_valid, y_valid = data()
    log = {}

    def afterwards(env):
        after(env.iteration + 1)

    afterwards.order = 26
    settings = {"objective": "l2", "learning_rate": rate, "num_leaves": 4, "min_data_in_leaf": 2, "num_threads": 1}
    train = lightgbm.Dataset(X, y[:, 0])
    lightgbm.train(
        {**settings, "verbosity": -1, "deterministic": True},
        train,
        valid_sets=[lightgbm.Dataset(X_valid, y_valid[:, 0], reference=train)],
        valid_names=["valid"],
        callbacks=[lightgbm.record_evaluation(log), callback, afterwards],
        **integration.going_on(epochs),
    )
    return log["valid"]["l2"]


def _skorch(epochs, callback, after, rate, integration):
    import skorch
    from skorch.helper import predefined_split
    from skorch.history import History

    torch, _, validation = _tensors()
    X, y, _, _ = data()

    class After(skorch.callbacks.Callback):
        def on_epoch_end(self, net, **kwargs):
            after(len(net.history))

    net = skorch.NeuralNetRegressor(
        torch.nn.Linear(4, 1),
        max_epochs=epochs,
        batch_size=16,
        optimizer=torch.optim.Adam,
        lr=rate,
        train_split=predefined_split(validation),
        verbose=0,
        callbacks=[("report", callback), ("after", After())],
    )
    kept = integration.checkpoint()
    begun = 0 if kept is None else len(History.from_file(str(kept / "history.json")))
    net.fit(X, y)
    assert net.max_epochs == epochs
    return net.history[begun:, "valid_loss"]
