"""joblib's calls as Ray tasks, for what scikit-learn runs in parallel: `joblib.parallel_config(RayTasks(ray))`.

Each batch of calls is one task with one processor. Arrays of a megabyte or more go to Ray's object store once, however
many tasks use them; workers read them from there without copying, and must not write to them. Estimators travel whole,
both ways: their arrays are their own, and they go on to learn into them. A batch whose worker or node is lost starts
again, as a trial does.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, cast

import numpy as np
from joblib._parallel_backends import ParallelBackendBase

from raybo.engine.lifecycle import Occurrence
from raybo.engine.study.dispatch import outcome_of_error

RETRIES = 2  # of a batch whose worker is lost
SHARED_BYTES = 2**20  # of an array that is worth sharing


class RayTasks(ParallelBackendBase):  # type: ignore[misc]  # joblib has no types
    """A joblib backend on the Ray that this process is connected to.

    Args:
        ray: the module, connected.
        lost: what calls that lost their workers return instead, from the calls and why their worker ended; None if
            that is an error.
    """

    supports_retrieve_callback = True
    supports_sharedmem = False
    default_n_jobs = -1

    def __init__(
        self, ray: Any, lost: Callable[[Sequence[Any], str], list[Any] | None] = lambda *_: None, **keywords: Any
    ) -> None:
        super().__init__(**keywords)
        self.ray, self.lost = ray, lost
        errors = ray.exceptions
        self.worker_ended = (errors.WorkerCrashedError, errors.NodeDiedError, errors.OutOfMemoryError)
        self.shared: dict[tuple[Any, ...], tuple[Any, Any]] = {}  # arrays that are kept, with where they lie
        # retried by `_start` instead, which tells a lost worker from a lack of memory
        self.task = ray.remote(num_cpus=1, max_retries=0)(_call)

    def effective_n_jobs(self, n_jobs: int | None) -> int:
        """As many as asked for; as many as the cluster has processors where all are asked for."""
        if n_jobs == 0:
            raise ValueError("n_jobs == 0 in Parallel has no meaning")
        cpus = max(1, int(self.ray.cluster_resources().get("CPU", 1)))
        if n_jobs is None:
            return 1
        return n_jobs if n_jobs > 0 else max(1, cpus + 1 + n_jobs)

    def configure(
        self, n_jobs: int = 1, parallel: Any = None, prefer: Any = None, require: Any = None, **_: Any
    ) -> int:
        """Called by joblib before the first call."""
        self.parallel = parallel
        return self.effective_n_jobs(n_jobs)

    def submit(self, func: Callable[[], Any], callback: Callable[[Any], None] | None = None) -> _Batch:
        """Run a batch of calls in a task; the callback is called at its end."""
        batch = _Batch(func)
        self._start(batch, *self._packed(func), RETRIES)
        if callback is not None:
            batch.add_done_callback(callback)
        return batch

    def _start(self, batch: _Batch, content: bytes, references: list[Any], retries: int) -> None:
        def end(task: Future[Any]) -> None:
            error = task.exception()
            if error is None:
                batch.set_result(task.result())
            elif retries and self._is_loss(error):
                try:
                    self._start(batch, content, references, retries - 1)
                except Exception as refused:  # noqa: BLE001  # joblib would wait for ever
                    batch.set_exception(refused)
            else:
                batch.set_exception(error)

        self.task.remote(content, *references).future().add_done_callback(end)

    def _is_loss(self, error: BaseException) -> bool:
        """True if another attempt may succeed."""
        return isinstance(error, self.worker_ended) and outcome_of_error(error)[0] is Occurrence.WORKER_LOST

    def retrieve_result_callback(self, out: _Batch) -> Any:
        """Return the results of a batch, or raise its exception."""
        error = out.exception()
        if isinstance(error, self.ray.exceptions.RayTaskError):
            raise error.cause from None
        if isinstance(error, self.worker_ended):
            instead = self.lost(out.calls.items, outcome_of_error(error)[1]["reason"])
            if instead is not None:
                return instead
        return pickle.loads(out.result())  # noqa: S301  # what this driver's own task returned

    def abort_everything(self, ensure_ready: bool = True) -> None:
        """Joblib gives up after a failure; tasks that still run end by themselves."""

    def _packed(self, func: Callable[[], Any]) -> tuple[bytes, list[Any]]:
        """The batch without its large arrays, and references to these."""
        references: list[Any] = []
        share, cloudpickle = self._share, cast(Any, self.ray.cloudpickle)

        class Packer(cloudpickle.CloudPickler):  # type: ignore[misc,name-defined]
            def persistent_id(self, value: Any) -> int | bytes | None:
                if hasattr(type(value), "get_params"):
                    return cast(bytes, cloudpickle.dumps(value))
                if type(value) is not np.ndarray or value.nbytes < SHARED_BYTES or value.dtype.hasobject:
                    return None
                references.append(share(value))
                return len(references) - 1

        content = io.BytesIO()
        cast(Any, Packer)(content).dump(func)
        return content.getvalue(), references

    def _share(self, array: np.ndarray[Any, Any]) -> Any:
        # the array is kept, so that nothing else can come to lie where it lies
        key = (array.__array_interface__["data"][0], array.shape, array.strides, array.dtype.str)
        if key not in self.shared:
            self.shared[key] = (array, self.ray.put(array))
        return self.shared[key][1]


class _Batch(Future[bytes]):
    """The result of a batch of calls, which joblib waits for.

    Args:
        calls: joblib's batch.
    """

    def __init__(self, calls: Any) -> None:
        super().__init__()
        self.calls = calls


def _call(content: bytes, *arrays: Any) -> bytes:
    from ray import cloudpickle

    class Unpacker(pickle.Unpickler):
        def persistent_load(self, of: Any) -> Any:
            return pickle.loads(of) if isinstance(of, bytes) else arrays[of]  # noqa: S301  # as below

    # what this task's own driver sent over Ray
    result = Unpacker(io.BytesIO(content)).load()()
    return cast(bytes, cast(Any, cloudpickle).dumps(result))  # as itself, its arrays could not be written to
