"""PyTorch's DistributedDataParallel on the processes of a trial, and in a TorchTrainer inside one."""

from __future__ import annotations

import importlib.util
import os
import signal

import pytest

import raybo
from raybo.record.events import Kind
from raybo.record.states import State

pytestmark = [
    pytest.mark.slow,
    pytest.mark.ray,
    pytest.mark.timeout(900),
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed"),
]
SPACE = raybo.Space({"rate": raybo.Float(1e-3, 0.5, log=True)})
STEPS = 5


def job_of(processes, log, dies=False):
    """A linear model, trained by processes that check at each step that they have the same weights."""

    @raybo.objective(space=SPACE, metric="loss", mode="min", steps=STEPS, processes=processes, num_cpus=0.5)
    def job(config):
        import torch
        import torch.distributed as dist
        from torch.nn.parallel import DistributedDataParallel

        torch.set_num_threads(1)
        dist.init_process_group("gloo")
        me, first = raybo.current_trial(), 1
        torch.manual_seed(0)
        model = DistributedDataParallel(torch.nn.Linear(2, 1))
        if (kept := raybo.checkpoint()) is not None:
            state = torch.load(kept / "state.pt")
            model.module.load_state_dict(state["model"])
            first = state["step"] + 1
        X = torch.randn(50, 2, generator=torch.Generator().manual_seed(me.rank))
        y = X @ torch.tensor([[2.0], [-1.0]])
        optimiser = torch.optim.SGD(model.parameters(), lr=config["rate"])
        for step in range(first, STEPS + 1):
            with open(log, "a") as file:
                print(me.number, me.attempt, me.rank, step, file=file)
            optimiser.zero_grad()
            loss = ((model(X) - y) ** 2).mean()
            loss.backward()
            optimiser.step()
            everybodys = [torch.zeros_like(model.module.weight) for _ in range(me.world_size)]
            dist.all_gather(everybodys, model.module.weight.detach())
            assert all(torch.equal(each, everybodys[0]) for each in everybodys)
            total = loss.detach().clone()
            dist.all_reduce(total)
            if me.rank == 0:
                with raybo.saving() as directory:
                    torch.save({"model": model.module.state_dict(), "step": step}, directory / "state.pt")
            if dies and (me.attempt, me.rank, step) == (1, processes - 1, 4):
                os.kill(os.getpid(), signal.SIGKILL)
            raybo.report({"loss": float(total) / me.world_size}, step=step)

    return job


def losses(study):
    """The loss of each step of trial 0."""
    return {e.data["step"]: e.data["value"] for e in study.events if e.kind is Kind.REPORTED and e.trial == 0}


@pytest.mark.parametrize("processes", [2, 4])
def test_a_killed_training_continues_with_the_same_losses(ray_session, tmp_path, processes):
    found = []
    for name, dies in (("whole", False), ("killed", True)):
        job = job_of(processes, tmp_path / name, dies)
        study = raybo.tune(job, trials=1, method="sobol", seed=0, workers=1, storage=tmp_path / f"{name}.db")
        (trial,) = study.trials
        assert (trial.state, trial.attempt) == (State.FINISHED, 2 if dies else 1), trial.reason
        found.append(losses(study))
    whole, killed = found
    assert set(whole) == set(range(1, STEPS + 1))
    assert killed == pytest.approx(whole, rel=1e-6)


def test_ddp_is_pruned_at_one_step(ray_session, tmp_path):
    log = tmp_path / "log"
    enqueued = [{"rate": 0.1}, {"rate": 0.001}]
    study = raybo.tune(
        job_of(2, log), trials=2, method="random", enqueue=enqueued, workers=1, scheduler="median",
        scheduler_options={"startup": 1}, storage=tmp_path / "a.db",
    )  # fmt: skip
    assert [trial.state for trial in study.trials] == [State.FINISHED, State.PRUNED]
    lines = [tuple(map(int, line.split())) for line in log.read_text().splitlines()]
    last = {rank: max(step for trial, _, other, step in lines if (trial, other) == (1, rank)) for rank in (0, 1)}
    assert last[0] == last[1] < STEPS


def test_a_torch_trainer_reports_to_its_trial(ray_session, tmp_path):
    pytest.importorskip("ray.train.torch", reason="Ray Train is not installed")

    @raybo.objective(space=SPACE, metric="loss", mode="min", steps=2, processes=2, num_cpus=0.5, nested=True)
    def job(config):
        from ray.train import RunConfig, ScalingConfig
        from ray.train.torch import TorchTrainer

        from raybo.integrations.ray_train import report_to_trial

        TorchTrainer(
            loop,
            train_loop_config=config,
            scaling_config=ScalingConfig(num_workers=2, resources_per_worker={"CPU": 0.5}),
            run_config=RunConfig(storage_path=str(tmp_path), callbacks=[report_to_trial()]),
        ).fit()

    def loop(config):
        import ray.train
        import torch
        from ray.train.torch import prepare_model

        model = prepare_model(torch.nn.Linear(1, 1))
        for _ in range(2):
            model(torch.ones(3, 1)).sum().backward()
            ray.train.report({"loss": config["rate"] + ray.train.get_context().get_world_rank()})

    (trial,) = raybo.tune(job, trials=1, method="sobol", seed=0, workers=1, storage=tmp_path / "a.db").trials
    assert (trial.state, trial.value) == (State.FINISHED, trial.config["rate"]), trial.reason
