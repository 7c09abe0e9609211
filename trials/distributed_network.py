"""A small network that tells digits apart, trained by two processes, each on half of the data: three hyperparameters.

    raybo tune trials/distributed_network.py --scheduler median
    raybo tune trials/distributed_network.py --processes 4

After every batch the processes average their gradients, through PyTorch's gloo if that is installed, else through
sockets at the address that raybo names. So they have the same weights at every step, of which rank 0 saves a checkpoint
after every epoch. An epoch takes a few hundredths of a second.
"""

from __future__ import annotations

import importlib.util
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from multiprocessing.connection import Client, Connection, Listener
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits

import raybo

Array = NDArray[np.float64]
Mean = Callable[[Array], Array]  # of an array over all processes

space = raybo.Space(
    {
        "learning_rate": raybo.Float(1e-3, 1.0, log=True),
        "units": raybo.Integer(8, 64, log=True),
        "batch_size": raybo.Integer(16, 128, log=True),  # of each process
    }
)


@raybo.objective(space=space, metric="accuracy", mode="max", steps=lambda epochs=8: epochs, processes=2, num_cpus=0.5)
def distributed_network(config: dict[str, Any], *, epochs: int = 8) -> Iterator[Mapping[str, float]]:
    """Accuracy on a third of the digits after every epoch."""
    me = raybo.current_trial()
    rank, count = (0, 1) if me is None else (me.rank, me.world_size)
    X, labels = load_digits(return_X_y=True)
    X, targets = X / 16.0, np.eye(10)[labels]
    is_test = np.arange(len(X)) % 3 == 0
    mine = np.flatnonzero(~is_test)[rank::count]
    batches = len(np.flatnonzero(~is_test)) // (count * config["batch_size"])  # as many on every rank
    weights, first = begun(config["units"])
    with averaging(rank, count) as mean:
        for epoch in range(first, epochs + 1):
            order = np.random.default_rng([epoch, rank]).permutation(mine)
            for rows in np.array_split(order, max(1, batches)):
                step = mean(gradient(weights, X[rows], targets[rows]))
                weights = weights - config["learning_rate"] * step
            if rank == 0:
                with raybo.saving() as directory:
                    np.savez(directory / "state.npz", weights=weights, epoch=epoch)
            guessed = predicted(weights, X[is_test])[1].argmax(axis=1)
            yield {"accuracy": float((guessed == labels[is_test]).mean())}


def begun(units: int) -> tuple[Array, int]:  # (75 * units + 10,)
    """Return the weights to begin with, and the first epoch."""
    if (kept := raybo.checkpoint()) is not None:
        with np.load(kept / "state.npz") as state:
            return state["weights"], int(state["epoch"]) + 1
    return np.random.default_rng(0).normal(0.0, 0.2, 65 * units + 10 * (units + 1)), 1


def layers(weights: Array) -> tuple[Array, Array]:  # (65, units), (units + 1, 10)
    """Return the weights of both layers, the last row of each for its bias."""
    units = (len(weights) - 10) // 75
    return weights[: 65 * units].reshape(65, units), weights[65 * units :].reshape(units + 1, 10)


def predicted(weights: Array, X: Array) -> tuple[Array, Array]:  # (n, units + 1), (n, 10)
    """Return what the hidden layer says, and the probability of each digit."""
    inner, outer = layers(weights)
    hidden = np.column_stack([np.tanh(X @ inner[:-1] + inner[-1]), np.ones(len(X))])
    scores = hidden @ outer
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return hidden, powers / powers.sum(axis=1, keepdims=True)


def gradient(weights: Array, X: Array, targets: Array) -> Array:
    """Return the gradient of the mean cross-entropy."""
    hidden, probabilities = predicted(weights, X)
    error = (probabilities - targets) / len(X)
    back = (error @ layers(weights)[1][:-1].T) * (1.0 - hidden[:, :-1] ** 2)
    inner = np.vstack([X.T @ back, back.sum(axis=0)])
    return np.concatenate([inner.ravel(), (hidden.T @ error).ravel()])


@contextmanager
def averaging(rank: int, count: int) -> Iterator[Mean]:
    """Yield a function that every process calls with an array at the same time, and that returns their mean."""
    if count == 1:
        yield lambda array: array
    elif importlib.util.find_spec("torch") is not None:
        import torch
        import torch.distributed as dist

        dist.init_process_group("gloo")  # by MASTER_ADDR, MASTER_PORT, RANK and WORLD_SIZE

        def mean(array: Array) -> Array:
            tensor = torch.from_numpy(array.copy())
            dist.all_reduce(tensor)
            return np.asarray(tensor.numpy()) / count

        yield mean
        dist.destroy_process_group()
    else:
        with ExitStack() as held:
            others = [held.enter_context(line) for line in connected(rank, count)]
            yield lambda array: mean_over(array, others, rank)


def connected(rank: int, count: int) -> list[Connection]:
    """Return the connections of rank 0 to all others, or that of another rank to rank 0."""
    address = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    if rank == 0:
        with Listener(address, backlog=count) as listener:
            return [listener.accept() for _ in range(count - 1)]
    while True:
        try:
            return [Client(address)]
        except ConnectionRefusedError:  # rank 0 does not listen yet
            time.sleep(0.02)


def mean_over(array: Array, others: list[Connection], rank: int) -> Array:
    """Send an array to rank 0, and return the mean that it sends back."""
    if rank:
        others[0].send(array)
        return np.asarray(others[0].recv())
    mean = np.mean([array, *(other.recv() for other in others)], axis=0)
    for other in others:
        other.send(mean)
    return np.asarray(mean)
