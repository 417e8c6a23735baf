"""What can be said without Ray: the options, and that Ray is missing."""

import sys

from madplug_ray import MISSING, Cluster


def test_check_says_how_to_install_ray(monkeypatch):
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.delitem(sys.modules, "ray", raising=False)
    assert list(Cluster().check(None)) == [MISSING]
