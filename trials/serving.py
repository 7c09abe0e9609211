"""An LLM server under a load that is observed and not chosen: tokens per second, and a bound on waiting.

    raybo tune trials/serving.py --method sbo-kde
    raybo tune trials/serving.py --method sbo-kde --set minutes=2

Four GPUs answer people, who should see the first token within 0.7 s, 99 times of 100, and in the time that is left
work on a backlog of documents that nobody waits for. What they do a second is the metric; how many requests people send
is the context. The more of the machine is given to the backlog, the more tokens it makes, and the longer people wait:
at a usual load they do not notice, at a high one they do.

The server is a simulation by discrete events, an iteration at a time, of continuous batching (Yu and others, 2022,
"Orca", OSDI) with chunked prefill (Agrawal and others, 2024, "Sarathi-Serve", OSDI): a request waits for a place in the
batch and for memory of its keys and values, is read in one iteration or in chunks, and then makes one token in each
iteration. An iteration takes as long as the weights and the keys and values take to be read from memory, and as the
prompts take to be computed. The constants are those of a model of 13 billion parameters of 16 bits on GPUs with 40 GB
(1.5 TB/s, 156 TFLOP/s in practice). Arrivals, lengths and the load belong to the trial's seed. A trial is five minutes
of traffic, which take some 50 ms.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import raybo

GPUS = 4
BOUND = 0.7  # seconds to the first token
WEIGHTS, KEYS_AND_VALUES = 26e9, 8.2e5  # bytes of the model, and of one token of context
MEMORY, READ, COMPUTED = 36e9, 1.5e12, 6e3  # of one GPU: usable bytes, bytes a second, tokens of prompts a second
OVERHEAD, EXCHANGE = 2e-3, 1.5e-3  # seconds of an iteration, and for each doubling of the GPUs that share a model
USUAL, SPREAD = 5.0, 0.4  # requests a second: median, and deviation of the logarithm
WARM_UP = 10.0  # seconds before anything is measured

space = raybo.Space(
    {
        "gpus_per_replica": raybo.Ordinal([1, 2, 4]),  # tensor parallelism: fewer replicas, each faster
        "max_seqs": raybo.Integer(4, 256, log=True),  # the largest batch of a replica
        "backlog_share": raybo.Float(0.0, 1.0),  # of these places, how many the backlog may take
        "max_tokens": raybo.Integer(128, 4096, log=True),  # in one iteration of a replica
        "chunked_prefill": raybo.Categorical([True, False]),  # prompts alongside answers, or before them
    }
)
context = {"load": raybo.Float(0, 20)}  # requests a second


@raybo.objective(
    space=space, context=context, metric="throughput", mode="max", constraints={"first_token": f"<= {BOUND:g}"}
)
def serving(config: dict[str, Any], *, minutes: float = 5.0, seed: int = 0) -> dict[str, float]:
    """Serve for a while under the load that comes: tokens per second, and the 99th percentile of time to the first."""
    me = raybo.current_trial()
    rng = np.random.default_rng([seed, 0 if me is None else me.seed])
    return serve(config, float(rng.lognormal(np.log(USUAL), SPREAD)), 60.0 * minutes, rng)


def serve(config: dict[str, Any], load: float, seconds: float, rng: np.random.Generator) -> dict[str, float]:
    """Serve at so many requests a second: the metric, the constrained number, and the load that was observed."""
    until = WARM_UP + seconds
    arrivals = np.sort(rng.random(rng.poisson(load * until))) * until
    prompts, answers = lengths(rng, len(arrivals), 250, 0.9), lengths(rng, len(arrivals), 120, 0.7)
    count = GPUS // config["gpus_per_replica"]
    replicas = [Replica(config, documents(rng)) for _ in range(count)]
    goes_to = rng.integers(count, size=len(arrivals))
    for number, replica in enumerate(replicas):
        mine = goes_to == number
        replica.run(until, [Request(*each) for each in zip(arrivals[mine], prompts[mine], answers[mine], strict=True)])
    waited = [seconds for replica in replicas for arrived, seconds in replica.waited if arrived >= WARM_UP]
    return {
        "throughput": sum(replica.made for replica in replicas) / seconds,
        "first_token": float(np.quantile(waited, 0.99)) if waited else 0.0,
        "load": min(float((arrivals >= WARM_UP).sum()) / seconds, 20.0),
    }


def lengths(rng: np.random.Generator, n: int, median: float, spread: float) -> Any:
    """Tokens of n texts, of a log-normal law with a long tail."""
    return np.clip(rng.lognormal(np.log(median), spread, n), 1, 2000).astype(int)


@dataclass
class Request:
    """A prompt that came at a time, and the number of tokens of its answer."""

    arrived: float
    prompt: int
    answer: int
    is_backlog: bool = False

    @property
    def size(self) -> int:
        """Tokens whose keys and values it needs to be kept."""
        return int(self.prompt + self.answer)


def documents(rng: np.random.Generator) -> Iterator[Request]:
    """The backlog, which never ends."""
    while True:
        for prompt, answer in zip(lengths(rng, 64, 800, 0.4), lengths(rng, 64, 150, 0.5), strict=True):
            yield Request(0.0, prompt, answer, is_backlog=True)


@dataclass
class Replica:
    """A copy of the model on its GPUs, and what happens in it.

    Attributes:
        config, backlog: as the server is set up, and what it works on when there is time.
        waited: of each request of people, when it came and how long its first token took; `made`: tokens after warm-up.
    """

    config: dict[str, Any]
    backlog: Iterator[Request]
    waited: list[tuple[float, float]] = field(default_factory=list)
    made: int = 0

    def __post_init__(self) -> None:
        gpus = self.config["gpus_per_replica"]
        self.speed = gpus / (1.0 + 0.1 * (gpus - 1))  # what GPUs achieve together
        self.fixed = OVERHEAD + EXCHANGE * np.log2(gpus) + WEIGHTS / READ / self.speed
        self.room = int((MEMORY * gpus - WEIGHTS) / KEYS_AND_VALUES)  # tokens in flight
        self.places = round(self.config["backlog_share"] * self.config["max_seqs"])
        self.now, self.steps, self.reserved, self.context, self.of_backlog = 0.0, 0, 0, 0, 0
        self.waiting: deque[Request] = deque()
        self.reading: deque[list[Any]] = deque()  # [request, tokens of its prompt that are left]
        self.answering: list[tuple[int, int, Request]] = []  # a heap: step of its last token, its number, request
        self.begun = 0
        self.next_document = next(self.backlog)

    def run(self, until: float, requests: list[Request]) -> None:
        """Serve these requests, and the backlog, until a time."""
        coming = deque(requests)
        while self.now < until:
            while coming and coming[0].arrived <= self.now:
                self.waiting.append(coming.popleft())
            self.admit()
            if self.reading:
                self.read()
            elif self.answering:
                self.answer(self.steps_until(coming[0].arrived if coming else until))
            else:
                self.now = coming[0].arrived if coming else until
        missed = [*self.waiting, *(request for request, _ in self.reading)]
        self.waited += [(each.arrived, self.now - each.arrived) for each in missed if not each.is_backlog]

    def admit(self) -> None:
        """Give places in the batch and memory, first to people."""
        while self.waiting and self.has_room(self.waiting[0]):
            self.begin(self.waiting.popleft())
        while not self.waiting and self.of_backlog < self.places and self.has_room(self.next_document):
            self.of_backlog += 1
            self.begin(self.next_document)
            self.next_document = next(self.backlog)

    def has_room(self, request: Request) -> bool:
        """Return True if the batch has a place and the memory for a request."""
        running = len(self.reading) + len(self.answering)
        return running < self.config["max_seqs"] and self.reserved + request.size <= self.room

    def begin(self, request: Request) -> None:
        """Take a request into the batch."""
        self.reserved += request.size
        self.reading.append([request, request.prompt])

    def read(self) -> None:
        """One iteration with prompts: chunks of them beside the answers, or whole ones while the answers wait."""
        is_chunked = self.config["chunked_prefill"]
        budget = self.config["max_tokens"] - (len(self.answering) if is_chunked else 0)
        read, done = 0, []
        while self.reading and (read < budget or not read):
            request, left = self.reading[0]
            if is_chunked:
                left = min(left, max(1, budget - read))
            elif read and read + left > budget:
                break
            read += left
            self.reading[0][1] -= left
            if self.reading[0][1] == 0:
                done.append(self.reading.popleft()[0])
        self.iterate(1 if is_chunked else 0, read)
        for request in done:
            self.begun += 1
            self.context += request.prompt + 1
            self.made += self.now > WARM_UP
            heapq.heappush(self.answering, (self.steps + request.answer - 1, self.begun, request))
            if not request.is_backlog:
                self.waited.append((request.arrived, self.now - request.arrived))
        self.end_answers()

    def answer(self, steps: int) -> None:
        """So many iterations in which every answer grows by a token."""
        self.iterate(steps, 0)
        self.end_answers()

    def steps_until(self, time: float) -> int:
        """Return how many iterations there are until then, or until an answer ends: at least one."""
        grows = KEYS_AND_VALUES / READ / self.speed * len(self.answering)  # from one iteration to the next
        first = self.fixed + KEYS_AND_VALUES / READ / self.speed * self.context
        b, left = first - grows / 2, max(time - self.now, 0.0)  # the smallest k with b k + grows k^2 / 2 >= left
        enough = np.ceil((np.sqrt(b * b + 2 * grows * left) - b) / grows)
        return max(1, min(self.answering[0][0] - self.steps, int(enough)))

    def iterate(self, steps: int, read: int) -> None:
        """Let time pass: iterations in which answers grow, or one that only reads so many tokens of prompts."""
        batch, times = len(self.answering), max(steps, 1)
        tokens = self.context * times + batch * steps * (steps - 1) / 2 if batch else 0
        self.now += times * self.fixed + read / COMPUTED / self.speed + KEYS_AND_VALUES * tokens / READ / self.speed
        self.steps += steps
        self.context += batch * steps
        self.made += batch * steps * (self.now > WARM_UP)

    def end_answers(self) -> None:
        """Free what the answers held that are complete."""
        while self.answering and self.answering[0][0] <= self.steps:
            request = heapq.heappop(self.answering)[2]
            self.reserved -= request.size
            self.context -= request.size
            self.of_backlog -= request.is_backlog
