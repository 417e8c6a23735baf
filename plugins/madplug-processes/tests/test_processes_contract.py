"""Debates in several processes end as they do in one."""

from madplug_processes import ProcessPool
from madplug_testing.contracts import ExecutorContract


class TestProcessPool(ExecutorContract):
    component = ProcessPool
    options = {"workers": 2}
