"""Workers in other processes: one protocol between the driver and a worker, whatever carries its bytes.

    wire      messages as bytes, in which nothing is executed when they are read
    link      the driver's end of the connection to one worker
    client    the worker's end: `RemoteDriver`, and `WorkerEnd`, which runs the jobs it gets
    pool      gives jobs to workers, and the jobs of a lost worker to another one

An executor supplies the transport: it starts a worker, and carries batches of bytes both ways, in order. The driver
grants slots and rates and is the only one that writes; an answered call is used once the driver has it on disk.
"""

from __future__ import annotations

from madplug_workers.client import WorkerEnd, mismatches
from madplug_workers.link import WorkerLost
from madplug_workers.pool import Pool, Transport

__all__ = ["Pool", "Transport", "WorkerEnd", "WorkerLost", "mismatches"]
