"""The thread that watches the event loop must not harm what it watches."""

import subprocess
import sys

# Collections in the watching thread let the watched one go on, which returns from the frames that are being read.
PROGRAM = """
import asyncio, gc, threading, time
from madplug.study import watchdog

def deep(n):
    return deep(n - 1) if n else None

def let_others_run(phase, info):
    if phase == "start" and threading.current_thread() is not threading.main_thread():
        time.sleep(0.001)

async def steps():
    for _ in range(60_000):
        deep(400)
        await asyncio.sleep(0)

watchdog.EVERY = 0.0002
gc.callbacks.append(let_others_run)
gc.set_threshold(1)
with watchdog.Watchdog((), print):
    asyncio.run(steps())
print("collecting" if gc.isenabled() else "not collecting")
"""


def test_frames_are_read_while_the_loop_goes_on_and_objects_are_collected():
    run = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=120)
    assert (run.returncode, run.stdout) == (0, "collecting\n"), run.stderr
