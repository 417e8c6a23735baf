"""Run by IPython when it starts, from the folder into which the distribution puts it: records are shown as pages."""
get_ipython().run_line_magic("load_ext", "madplug_read")  # noqa: F821 - defined by IPython
