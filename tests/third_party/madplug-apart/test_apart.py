"""Debates in other processes end as they do in the host's own."""

from madplug_apart import Pipes
from madplug_testing.contracts import ExecutorContract


class TestPipes(ExecutorContract):
    component = Pipes
