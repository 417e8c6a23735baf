"""A rate over several processes, against an endpoint that enforces it."""
