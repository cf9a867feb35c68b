"""The throughput of workers that share servers, each of which does one thing at a time."""

from collections.abc import Sequence


def throughput(workers: int, alone: float, shared: Sequence[float]) -> float:
    """Return documents per second of a closed queueing network by exact mean value analysis.

    `alone` are the seconds per document in which a worker uses nothing that others use; each item
    of `shared` is the seconds of one server (the ledger, the broker) for a document. With few
    workers the result is workers ÷ (alone + sum of shared), with many 1 ÷ the longest item. After
    Reiser and Lavenberg, Mean-Value Analysis of Closed Multichain Queuing Networks (1980).
    """
    queues = [0.0] * len(shared)
    rate = 0.0
    for count in range(1, workers + 1):
        waits = [seconds * (1 + queue) for seconds, queue in zip(shared, queues, strict=True)]
        rate = count / (alone + sum(waits))
        queues = [rate * wait for wait in waits]
    return rate
