"""A page to ask councils of models from, as a part of `madplug view --ask`."""
