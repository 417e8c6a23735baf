"""What can be said without Ray: the options, and that Ray is missing."""

import sys

import pytest
from pydantic import ValidationError

from madplug_ray import MISSING, Cluster, madplug_register_executors


def test_the_plugin_registers_its_executor():
    assert madplug_register_executors() == [Cluster]


def test_a_cluster_without_workers_is_refused():
    with pytest.raises(ValidationError, match="greater than or equal to 1"):
        Cluster(workers=0)


def test_check_says_how_to_install_ray(monkeypatch):
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.delitem(sys.modules, "ray", raising=False)
    assert list(Cluster().check(None)) == [MISSING]
