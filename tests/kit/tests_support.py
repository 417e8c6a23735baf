"""Texts that the host's tests share."""

RUN = """
name = "study"
[dataset]
use = "kit.numbered"
size = 6
[models.m]
use = "kit.hash"
[debate]
paradigm = "kit.pair"
[[metrics]]
use = "kit.right"
"""
