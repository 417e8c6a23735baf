"""Debates in several processes end as they do in one."""

from madplug.testing.contracts import ExecutorContract
from madplug_processes import ProcessPool


class TestProcessPool(ExecutorContract):
    component = ProcessPool
    options = {"workers": 2}
