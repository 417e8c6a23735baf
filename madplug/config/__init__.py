"""From a run file to a study, in three steps.

`read` merges layers, presets and cells, `build` makes the components, `check` verifies that they fit together;
`resolve` does one after the other. All problems of all cells are collected before any is reported.
"""

from __future__ import annotations

from madplug.config.resolve import ResolvedStudy, Resolver, cell_to_table, load

__all__ = ["ResolvedStudy", "Resolver", "cell_to_table", "load"]
