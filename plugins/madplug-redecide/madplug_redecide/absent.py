"""What takes the place of a model that cannot be made where recorded debates are decided again."""

from __future__ import annotations

from madplug import Completion, Model, ModelError, ModelOptions, Request


class AbsentOptions(ModelOptions):
    """Options of `redecide.absent`."""


class Absent(Model):
    """Answers nothing: stands for the model of a recorded debate that cannot be made here and is not needed.

    `madplug decide` puts it in the place of models whose plugin is not installed, say. A component that asks it fails
    its debate.
    """

    name = "absent"

    Options = AbsentOptions

    async def complete(self, request: Request) -> Completion:
        """Raise `ModelError`."""
        raise ModelError("the model of the recorded debate cannot be made here; name another one with "
                         "--set models.NAME.use=...")
