"""Bases of observers that report over a network, and of experiment trackers. It offers no component."""

from __future__ import annotations

from madplug_tracking.network import Ledger, NetworkObserver, NetworkOptions, RejectedError
from madplug_tracking.trackers import RunningFigures, TrackedCell, Tracker, TrackingOptions, flatten

__all__ = ["Ledger", "NetworkObserver", "NetworkOptions", "RejectedError", "RunningFigures", "TrackedCell", "Tracker",
           "TrackingOptions", "flatten"]
