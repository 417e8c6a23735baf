"""Debates in the other process end as they do in the host's own."""

from madplug_apart import OneProcess
from madplug_testing.contracts import ExecutorContract


class TestOneProcess(ExecutorContract):
    component = OneProcess
