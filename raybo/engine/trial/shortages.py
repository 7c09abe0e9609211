"""Tells from an exception what its machine lacked: room on a disk, or memory."""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator

from raybo.common.messages import in_words

REASON_CHARACTERS = 250
CAUSES = 10  # of an exception, one of the other
MAKE_ROOM = "make room on the disk; --retry-failed runs again what is lost by then"
NO_MEMORY = "out of memory"
# by name, as none of them is imported here: of torch, cupy, Ray and others
MEMORY_ERRORS = ("MemoryError", "OutOfMemoryError", "ResourceExhaustedError")
# of exceptions of general classes: JAX's, XGBoost's, those of torch on a CPU and of CUDA's libraries
MEMORY_WORDS = re.compile(
    r"RESOURCE_EXHAUSTED|CUDA out of memory|CUDA error: out of memory|cudaErrorMemoryAllocation|std::bad_alloc"
    r"|CUDNN_STATUS_ALLOC_FAILED|CUBLAS_STATUS_ALLOC_FAILED|DefaultCPUAllocator: (can't|not enough)"
)


def lacked_room(error: BaseException) -> str | None:
    """Return, in words, that a disk was full, which is no fault of the job's; None if something else is wrong."""
    for each in _causes(error):
        if isinstance(each, OSError) and each.errno in (errno.ENOSPC, errno.EDQUOT):
            return f"{in_words(each)[:REASON_CHARACTERS]}; {MAKE_ROOM}"
    return None


def lacked_memory(error: BaseException) -> bool:
    """True if there was too little memory, of the machine or of a device, for what raised this."""
    return any(_is_of_memory(each) for each in _causes(error))


def _is_of_memory(error: BaseException) -> bool:
    if any(each.__name__ in MEMORY_ERRORS for each in type(error).__mro__):
        return True
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    return isinstance(error, Exception) and MEMORY_WORDS.search(in_words(error)) is not None


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception and those from which it came."""
    seen: BaseException | None = error
    for _ in range(CAUSES):
        if seen is None:
            return
        yield seen
        seen = seen.__cause__ or seen.__context__
