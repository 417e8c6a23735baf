"""`python -m madplug`."""

from madplug.cli.program import main

main(prog_name="madplug")
