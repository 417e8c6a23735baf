"""Debates in the other process end as they do in the host's own."""

from madplug.testing.contracts import ExecutorContract
from madplug_apart import OneProcess


class TestOneProcess(ExecutorContract):
    component = OneProcess
