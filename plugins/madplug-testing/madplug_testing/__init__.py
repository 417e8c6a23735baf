"""The kit that madplug's own plugins are tested with.

`madplug_testing.contracts` has a test class to inherit for each kind of component, `madplug_testing.endpoint` is an
HTTP endpoint with faults, `madplug_testing.clock` an event loop with virtual time, and `madplug_testing.fixtures`
installs a module as a plugin for one test. `play` and `debate_from`, which run debates with replies written by the
test, are in the host: `madplug.testing`.
"""

import pytest

# A failed contract shows the values it compared, as a failed test does.
pytest.register_assert_rewrite("madplug_testing.contracts")
