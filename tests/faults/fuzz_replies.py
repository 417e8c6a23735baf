"""Coverage-guided fuzzing of what reads ballots, agreements and verdicts: an option beside the tests, not one of them.

    pip install atheris        # CPython 3.11 to 3.13 on Linux
    python -m tests.faults.fuzz_replies -max_total_time=60

Any reply is read or refused, within the time limit; anything else ends the run with the reply that did it.
"""

import sys
from contextlib import suppress

import atheris

READING = ["madplug_prompting.replies", "madplug_judge.synthesis", "madplug_voting.ballots"]
with atheris.instrument_imports(include=READING):
    from madplug_judge.synthesis import read_number
    from madplug_prompting.replies import read_agreement, read_json
    from madplug_voting import ballots

SOLUTIONS = range(3)
READERS = (lambda text: ballots.one(text, SOLUTIONS), lambda text: ballots.several(text, SOLUTIONS),
           lambda text: ballots.ranking(text, SOLUTIONS, 5), lambda text: ballots.points(text, SOLUTIONS),
           read_agreement, read_json, lambda text: read_number(text, 3))


def read_all(data: bytes) -> None:
    """Read one reply in every way."""
    text = atheris.FuzzedDataProvider(data).ConsumeUnicodeNoSurrogates(3000)
    for read in READERS:
        with suppress(ballots.Refused):
            read(text)


if __name__ == "__main__":
    atheris.Setup([*sys.argv, "-timeout=20"], read_all)
    atheris.Fuzz()
