"""LoRA on a small model: what is trained, what memory it takes, and a lost trial that goes on where it was."""

from __future__ import annotations

import pytest

from raybo.job.reports import reports_sent_to
from tests.integrations.listener import Listener

torch = pytest.importorskip("torch", reason="torch is not installed")
pytestmark = pytest.mark.slow  # torch alone takes seconds to be imported

GOOD = {"r": 4, "lora_alpha": 8, "lora_dropout": 0.1, "learning_rate": 1e-2, "weight_decay": 0.0}
GOOD |= {"targets": "query and value", "batch_size": 8}


@pytest.fixture(scope="module")
def lora():
    from trials import lora_adapters

    return lora_adapters


def run(lora, listener, epochs, **changes):
    listener.directory.mkdir(exist_ok=True)
    with reports_sent_to(listener):
        for metrics in lora.lora_adapters({**GOOD, **changes}, epochs=epochs):
            listener.report(metrics, None)
    return listener.reports


def test_adapters_begin_as_the_model_and_learn(lora, tmp_path):
    model, questions = lora.pretrained(0), lora.sentences(256, asks=True, seed=5)
    adapters = lora.Adapters(GOOD).eval()
    with torch.no_grad():
        before = float(lora.loss_of(model, questions))
        assert float(lora.loss_of(model, questions, adapters)) == pytest.approx(before)
    assert float(lora.loss_of(model, lora.sentences(256, asks=False, seed=5))) < 1.7 < 5.0 < before
    weights = [each.clone() for each in model.parameters()]
    reports = run(lora, Listener(tmp_path / "a"), 6)
    assert reports[6]["loss"] < 1.7 < reports[1]["loss"]
    assert all(torch.equal(a, b) for a, b in zip(weights, model.parameters(), strict=True))  # frozen


def test_memory_grows_with_rank_and_batch(lora, tmp_path):
    def memory(name, **changes):
        return run(lora, Listener(tmp_path / name), 1, **changes)[1]["memory"]

    small, wide, long = memory("a"), memory("b", r=64), memory("c", batch_size=64)
    matrices = 4  # query and value of two layers
    of_adapters = 4 * 4 * matrices * 2 * 64 * (64 - 4)  # weights, gradients and two moments, of four bytes
    assert wide - small > of_adapters
    assert wide - small < 2 * of_adapters
    assert 4 * small < long < 8 * small
    assert small < 2e6 < long


def test_a_lost_trial_goes_on_where_it_was(lora, tmp_path):
    whole = run(lora, Listener(tmp_path / "a"), 4)
    lost = Listener(tmp_path / "b", die_at=3)
    with pytest.raises(KeyboardInterrupt):
        run(lora, lost, 4)
    run(lora, lost, 4)
    for step, metrics in whole.items():
        assert lost.reports[step] == pytest.approx(metrics, rel=1e-5)
