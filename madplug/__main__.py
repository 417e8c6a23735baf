"""`python -m madplug`."""

from madplug.cli import main

main(prog_name="madplug")
