"""LoRA: adapters of low rank that teach a small language model another style, epoch by epoch, within a memory limit.

    raybo tune trials/lora_adapters.py --scheduler curve
    raybo tune trials/lora_adapters.py --scheduler asha --scheduler-option eta=3 --set epochs=9

The model is a transformer of 100,000 weights that knows statements ("the old cat sees a red ball ."). It is made on the
spot, in seconds, and kept for the trials that follow in the same process. Its weights are then frozen, and adapters
(Hu and others, 2021, "LoRA", arXiv:2106.09685) learn from 256 sentences to ask ("does a red ball please the old cat
?"). The value is the cross-entropy of a token on other questions; `memory` are the bytes that training takes beside the
frozen weights: adapters, gradients, the optimiser's state, and what is kept for the backward pass. Every epoch is
reported with a checkpoint of adapters and optimiser, so that a lost trial goes on where it was. Needs PyTorch; an epoch
takes some tenths of a second on one core.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, dropout, linear, scaled_dot_product_attention

import raybo

ADJECTIVES = "old red small quick green happy tall quiet".split()
NOUNS = "cat ball girl dog tree boat king bird".split()
VERBS = "sees likes finds hears wants makes".split()
OTHERS = "please amuse follow surprise".split()
WORDS = ["the", "a", "does", ".", "?", *ADJECTIVES, *NOUNS, *VERBS, *OTHERS]
WIDTH, HEADS, LAYERS, LENGTH = 64, 4, 2, 9
TARGETS = {"query and value": (0, 2), "all of attention": (0, 1, 2, 3)}  # of query, key, value and output

space = raybo.Space(
    {
        **raybo.spaces.lora(leave_out=["warmup_ratio"]),
        "targets": raybo.Categorical([*TARGETS], guess="query and value"),
        "batch_size": raybo.Ordinal([4, 8, 16, 32, 64], guess=16),
    }
)


@raybo.objective(
    space=space,
    metric="loss",
    mode="min",
    steps=lambda epochs=9: epochs,
    constraints={"memory": "<= 2e6 at every step"},
)
def lora_adapters(config: dict[str, Any], *, epochs: int = 9, seed: int = 0) -> Iterator[Mapping[str, float]]:
    """Cross-entropy on held-out questions, and bytes that training takes, after every epoch."""
    torch.set_num_threads(1)
    model, questions = pretrained(seed), sentences(512, asks=True, seed=seed + 1)
    train, held_out = questions[:256], questions[256:]
    torch.manual_seed(seed)
    adapters = Adapters(config)
    optimiser = torch.optim.AdamW(
        adapters.parameters(), lr=config["learning_rate"], weight_decay=config["weight_decay"]
    )
    first = 1
    if (kept := raybo.checkpoint()) is not None:
        state = torch.load(kept / "state.pt", weights_only=True)
        adapters.load_state_dict(state["adapters"])
        optimiser.load_state_dict(state["optimiser"])
        first = state["epoch"] + 1
    for epoch in range(first, epochs + 1):
        order = torch.from_numpy(np.random.default_rng([seed, epoch]).permutation(len(train)))
        torch.manual_seed(1000 * seed + epoch)  # dropout, the same after a loss
        adapters.train()
        most = 0
        for rows in order.split(config["batch_size"]):
            optimiser.zero_grad()
            with counting() as kept_for_backward:
                loss = loss_of(model, train[rows], adapters)
            most = max(most, sum(kept_for_backward.values()))
            loss.backward()
            optimiser.step()
        adapters.eval()
        with torch.no_grad():
            value = float(loss_of(model, held_out, adapters))
        with raybo.saving() as directory:
            state = {"adapters": adapters.state_dict(), "optimiser": optimiser.state_dict(), "epoch": epoch}
            torch.save(state, directory / "state.pt")
        yield {"loss": value, "memory": float(most + of_training(adapters, optimiser))}


class Block(nn.Module):
    """Attention and two dense layers."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(4))  # query, key, value, output
        self.dense = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(2))

    def forward(self, x: Tensor, adapters: Adapters | None, layer: int) -> Tensor:  # (b, t, width)
        def projected(x: Tensor, which: int) -> Tensor:
            y: Tensor = self.attention[which](x)
            return y if adapters is None else y + adapters.change(x, layer, which)

        z = self.norms[0](x)
        q, k, v = (projected(z, i).unflatten(2, (HEADS, -1)).transpose(1, 2) for i in range(3))
        x = x + projected(scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2), 3)
        return x + self.dense(self.norms[1](x))


class Model(nn.Module):
    """A transformer that predicts the next word."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(len(WORDS), WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.last = nn.Linear(WIDTH, len(WORDS))

    def forward(self, tokens: Tensor, adapters: Adapters | None = None) -> Tensor:  # (b, t) -> (b, t, words)
        x = self.words(tokens) + self.places.weight[: tokens.shape[1]]
        for layer, block in enumerate(self.blocks):
            x = block(x, adapters, layer)
        logits: Tensor = self.last(x)
        return logits


class Adapters(nn.Module):
    """For each adapted matrix W a change alpha / r B A, of rank r; B begins at 0, and so does the change."""

    def __init__(self, config: dict[str, Any]) -> None:
        super().__init__()
        self.scale, self.rate = config["lora_alpha"] / config["r"], config["lora_dropout"]
        keys = [f"{layer} {which}" for layer in range(LAYERS) for which in TARGETS[config["targets"]]]
        shape = config["r"], WIDTH
        self.A = nn.ParameterDict({key: nn.Parameter(torch.randn(shape) / WIDTH**0.5) for key in keys})
        self.B = nn.ParameterDict({key: nn.Parameter(torch.zeros(shape[::-1])) for key in keys})

    def change(self, x: Tensor, layer: int, which: int) -> Tensor | float:
        """What is added to the output of one matrix."""
        if (key := f"{layer} {which}") not in self.A:
            return 0.0
        x = dropout(x, self.rate, self.training)
        return self.scale * linear(linear(x, self.A[key]), self.B[key])


@lru_cache(maxsize=1)
def pretrained(seed: int, steps: int = 200) -> Model:
    """Return the model that knows statements, frozen."""
    torch.manual_seed(seed)
    model, statements = Model(), sentences(2048, asks=False, seed=seed)
    optimiser = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for rows in torch.randint(len(statements), (steps, 64)):
        optimiser.zero_grad()
        loss_of(model, statements[rows]).backward()
        optimiser.step()
    model.requires_grad_(False)
    return model


def sentences(n: int, *, asks: bool, seed: int) -> Tensor:  # (n, LENGTH)
    """Return n statements, or n questions, as numbers of words."""
    rng = np.random.default_rng([seed, asks])

    def thing() -> list[str]:
        return [rng.choice(["the", "a"]), rng.choice(ADJECTIVES), rng.choice(NOUNS)]

    def sentence() -> list[str]:
        if asks:
            return ["does", *thing(), rng.choice(OTHERS), *thing(), "?"]
        return ["the", rng.choice(ADJECTIVES), rng.choice(NOUNS), rng.choice(VERBS), *thing(), ".", "."]

    return torch.tensor([[WORDS.index(word) for word in sentence()] for _ in range(n)])


def loss_of(model: Model, tokens: Tensor, adapters: Adapters | None = None) -> Tensor:
    """Return the mean cross-entropy of the next word."""
    return cross_entropy(model(tokens[:, :-1], adapters).flatten(0, 1), tokens[:, 1:].flatten())


class counting(torch.autograd.graph.saved_tensors_hooks):
    """Counts the bytes that a forward pass keeps for the backward one: a dict from memory addresses to bytes."""

    def __init__(self) -> None:
        self.found: dict[int, int] = {}
        super().__init__(self.seen, lambda tensor: tensor)

    def seen(self, tensor: Tensor) -> Tensor:
        """Count a tensor, once wherever it is kept, and keep it as it is."""
        memory = tensor.untyped_storage()
        self.found[memory.data_ptr()] = memory.nbytes()
        return tensor

    def __enter__(self) -> dict[int, int]:
        super().__enter__()
        return self.found


def of_training(adapters: Adapters, optimiser: torch.optim.Optimizer) -> int:
    """Return the bytes of the adapters, their gradients and the optimiser's state."""
    states = [each for state in optimiser.state.values() for each in state.values() if isinstance(each, Tensor)]
    return sum(2 * int(each.nbytes) for each in adapters.parameters()) + sum(int(each.nbytes) for each in states)
