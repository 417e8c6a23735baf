"""Sandboxes: what a program may do, what is recorded of what it may not, and what hostile programs try."""

import asyncio
import os
import signal
import socket
import sys
from pathlib import Path

import pytest

from madplug import UserError
from madplug_sandbox import Bubblewrap, Monty
from madplug_sandbox.bubblewrap import mounts
from madplug_sandbox.syscalls import FCNTL, MACHINES, REFUSED, filter_program

SECRET = "sk-a-secret-of-the-parent"


def bubblewrap_works():
    try:
        asyncio.run(Bubblewrap().open())
    except UserError:
        return False
    return True


needs_bubblewrap = pytest.mark.skipif(
    not bubblewrap_works(), reason="bubblewrap is not installed or may not make namespaces here")
in_both = pytest.mark.parametrize("sandbox", [Monty, pytest.param(Bubblewrap, marks=needs_bubblewrap)])


def run(sandbox, program, **options):
    return asyncio.run(sandbox(**options).run(program))


def boxed(program, **options):
    return run(Bubblewrap, program, **{"seconds": 10, **options})


@in_both
@pytest.mark.parametrize(("program", "output"), [
    ("print(6 * 7)", "42\n"), ("print(sum(i * i for i in range(10)))", "285\n"),
    ("import math\nprint(math.comb(5, 2))", "10\n"),
    ("from itertools import permutations\nprint(len(list(permutations('abcd'))))", "24\n"),
    ("try:\n    1 / 0\nexcept ZeroDivisionError:\n    print('caught')", "caught\n"), ("print('häßlich')", "häßlich\n")])
def test_programs_run(sandbox, program, output):
    ended = run(sandbox, program)
    assert (ended.status, ended.output) == ("ok", output)


@in_both
@pytest.mark.parametrize(("program", "statuses"), [
    ("1 / 0", "error"), ("raise ValueError('no')", "error"), ("def (", "error"), ("print(undefined)", "error"),
    ("x = 1", "silent"), ("", "silent"), ("print()", "silent"), ("def f(): f()\nf()", "error"),
    ("raise NotImplementedError('later')", "error"), ("import no_such_module_at_all", "unsupported"), ("\x00", "error"),
    ("print('\ud800')", "error ok"),  # arrives as a question mark in bubblewrap
    ("raise TypeError('bad')", "error"), ("''.foo", "error")])
def test_failures_are_distinguished(sandbox, program, statuses):
    ended = run(sandbox, program)
    assert ended.status in statuses.split()
    assert ended.status != "ok" or sandbox is Bubblewrap


@in_both
@pytest.mark.parametrize(("program", "limits", "status"), [
    # an endless program is stopped and cannot catch its end
    ("while True: pass", {"seconds": 0.5}, "timeout"),
    ("while True:\n    try:\n        while True: pass\n    except BaseException: pass", {"seconds": 0.5}, "timeout"),
    ("x = 'a' * 10**10", {"memory_mb": 64}, "memory"),
    ("x = []\nwhile True: x.append('a' * 10**6)", {"memory_mb": 64}, "memory"),
    ("print('x' * 100000)", {"output": 100}, "output"),
    ("while True: print('y' * 1000)", {"output": 100, "seconds": 0.5}, "output")])
def test_time_memory_and_output_are_limited(sandbox, program, limits, status):
    ended = run(sandbox, program, **limits)
    assert (ended.status, len(ended.output)) == (status, 100 if status == "output" else 0)


@in_both
@pytest.mark.parametrize("program", [
    "print(open({secret!r}).read())", "import pathlib\nprint(pathlib.Path({secret!r}).read_text())",
    "import os\nprint(os.environ.get('MADPLUG_TEST_SECRET', 'nothing'))\nprint(dict(os.environ))"])
def test_files_and_the_environment_are_out_of_reach(sandbox, program, tmp_path, monkeypatch):
    monkeypatch.setenv("MADPLUG_TEST_SECRET", SECRET)
    (secret := tmp_path / "secret").write_text(SECRET)
    ended = run(sandbox, program.format(secret=str(secret)))
    assert "environ" in program or ended.status in ("error", "unsupported")
    assert SECRET not in ended.output + ended.error


@in_both
@pytest.mark.parametrize("path", ["/tmp/written", "/written", "/usr/written"])
def test_nothing_can_be_written(sandbox, path):
    ended = run(sandbox, f"with open({path!r}, 'w') as f:\n    f.write('x' * 100)\nprint('done')")
    assert ended.output == ""
    assert not os.path.exists(path)


@in_both
def test_the_network_is_out_of_reach(sandbox):
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        ended = run(sandbox, f"import socket\nsocket.create_connection({server.getsockname()!r}, 1)")
        with pytest.raises(BlockingIOError):  # nobody is waiting to be accepted
            server.accept()
    assert ended.status in ("error", "unsupported")


@pytest.mark.parametrize("program", [
    "import os\nos.system('true')", "import subprocess\nprint(subprocess.run(['true']))",
    "__import__('os').system('true')", "print(().__class__.__bases__[0].__subclasses__())", "import ctypes",
    "import sys\nsys.modules['os'].system('true')", "eval(\"__import__('os').system('true')\")"])
def test_monty_offers_no_way_out(program):
    ended = run(Monty, program)
    assert (ended.status in ("error", "unsupported"), ended.output) == (True, "")


@in_both
def test_a_program_is_the_same_in_every_run(sandbox):
    program = "import random\nprint(random.random(), random.randint(1, 10**9))"
    assert run(sandbox, program).output == run(sandbox, program).output


def test_time_stands_still_in_monty():
    ended = run(Monty, "import time, datetime\ntime.sleep(30)\nprint(datetime.datetime.now().year)")
    assert (ended.status, ended.output) == ("ok", "2000\n")


FULL = ["class A: pass\nclass B(A): pass\nprint(isinstance(B(), A))", "def g():\n    yield True\nprint(*g())",
        "import heapq\nprint(heapq.nsmallest(1, [True])[0])"]


@pytest.mark.parametrize("program", [
    *FULL, "import numpy as np\nprint(np.pi)", "from fractions import Fraction\nprint(Fraction(1, 3))",
    "from math import *\nprint(pi)", "import sys\nprint(1)\nsys.exit()", "x = 1\ndel x\nprint(1)", "print(input())"])
def test_what_monty_lacks_is_unsupported_and_no_error_of_the_program(program):
    ended = run(Monty, program)
    assert (ended.status, bool(ended.error)) == ("unsupported", True)


@needs_bubblewrap
@pytest.mark.parametrize("program", FULL)
def test_bubblewrap_has_all_of_python(program):
    assert boxed(program).output == "True\n"


def test_many_programs_run_at_the_same_time_and_none_sees_another():
    async def together():
        box = Monty(processes=2)
        program = "try:\n    print(x)\nexcept NameError:\n    print({})\nx = 'seen'"
        return await asyncio.gather(*(box.run(program.format(i)) for i in range(8)))

    assert [e.output for e in asyncio.run(together())] == [f"{i}\n" for i in range(8)]


def test_missing_bubblewrap_is_a_clear_error():
    assert "install bubblewrap" in next(iter(Bubblewrap(binary="no-such-bwrap").check(None)))
    with pytest.raises(UserError, match="no-such-bwrap', which is not installed"):
        asyncio.run(Bubblewrap(binary="no-such-bwrap").open())


# What hostile programs try in bubblewrap: reading secrets, getting out, and using the machine up

@needs_bubblewrap
def test_no_process_in_the_sandbox_has_the_environment_of_the_parent(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    ended = boxed("""
import glob
for path in glob.glob("/proc/*/environ") + glob.glob("/proc/*/task/*/environ"):
    try: print(path, open(path, "rb").read())
    except OSError as error: print(path, error)
""")
    assert (ended.status, "/proc/1/environ" in ended.output) == ("ok", True)
    assert SECRET not in ended.output + ended.error


@needs_bubblewrap
def test_only_standard_streams_are_inherited(tmp_path):
    with (tmp_path / "open").open("w+") as file:
        os.set_inheritable(file.fileno(), True)
        ended = boxed("""
import os
for fd in range(64):
    try: print(fd, os.readlink(f"/proc/self/fd/{fd}").partition(":")[0])
    except OSError: pass
""")
    assert ended.output == "0 pipe\n1 pipe\n2 pipe\n"


@needs_bubblewrap
def test_home_temporary_files_and_the_working_directory_are_not_there(tmp_path):
    (tmp_path / "note").write_text(SECRET)
    ended = boxed(f"""
import os
for place in ({str(Path.home())!r}, "/root", "/home", "/etc", "/var", "/sys", "/tmp", {os.getcwd()!r},
              {str(tmp_path)!r}, "/proc/1/cwd/etc"):
    try: print(place, sorted(os.listdir(place)))
    except OSError: print(place, "-")
""")
    allowed = {str(Path(prefix)) for prefix in (sys.prefix, sys.base_prefix)}
    for line in ended.output.splitlines():
        place, _, found = line.partition(" ")
        assert found in ("-", "[]") or any(prefix.startswith(place) for prefix in allowed), line


def test_of_an_environment_only_the_libraries_are_mounted(monkeypatch):
    monkeypatch.setattr(sys, "prefix", "/home/someone")
    assert "/home/someone/lib" in mounts()
    assert "/home/someone" not in mounts()


@needs_bubblewrap
@pytest.mark.parametrize("folder", ["/", "/tmp", "/dev", "/dev/shm", "/proc", "/usr", "/var/tmp"])
@pytest.mark.parametrize("make", ["os.symlink('x' * 4000, path)", "os.mkdir(path)", "open(path, 'w').close()",
                                  "os.mkfifo(path)", "os.mknod(path)"])
def test_nothing_can_be_made_anywhere(folder, make):
    ended = boxed(f"import os\npath = {folder!r} + '/made'\n{make}\nprint('made')")
    assert (ended.output, ended.status in ("unsupported", "error")) == ("", True)


LIBC = """
import ctypes, os
def libc(name, *arguments):
    if getattr(ctypes.CDLL(None, use_errno=True), name)(*arguments) == -1:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
"""
REFUSED_CALLS = [
    "os.memfd_create('x')", "libc('shmget', 0, 1 << 30, 0o1600)", "libc('msgget', 0, 0o1600)",
    "libc('semget', 0, 100, 0o1600)", "libc('mq_open', b'/x', 0o102, 0o600, None)", "libc('unshare', 0x10000000)",
    "libc('inotify_init1', 0)", "libc('ptrace', 0, 0, 0, 0)", "import fcntl\nfcntl.fcntl(os.pipe()[1], 1031, 1 << 20)",
    "import fcntl, sys\nfcntl.lockf(open(sys.executable), fcntl.LOCK_SH)",
    "import socket\nsocket.send_fds(socket.socketpair()[0], [b'x'], [0])",
    *(f"import socket\nsocket.socket(socket.{family}, socket.SOCK_STREAM)" for family in (
        "AF_INET", "AF_INET6", "AF_UNIX", "AF_NETLINK", "AF_VSOCK") if hasattr(socket, family))]
STARTS = [
    "import os\nos.fork()", "import subprocess\nsubprocess.run(['/usr/bin/true'])",
    "import os\nos.system('true') and 1/0", "import os\nos.posix_spawn('/usr/bin/true', ['true'], {})",
    "import threading\nthreading.Thread(target=print).start()",
    "import multiprocessing\nmultiprocessing.get_context('fork').Process(target=print).start()",
    "import _thread\n_thread.start_new_thread(print, ())"]


@needs_bubblewrap
@pytest.mark.parametrize(("program", "statuses"), [
    # memory that is not counted, namespaces and sockets; processes and threads; descriptors that are not the program's
    *((LIBC + call, ["unsupported"]) for call in REFUSED_CALLS),
    *((start, ["unsupported", "error"]) for start in STARTS),
    *((f"import os\nos.write({fd}, b'x')", ["error"]) for fd in (0, 3, 4, 10))])
def test_what_leads_out_of_the_sandbox_is_refused(program, statuses):
    ended = boxed(f"{program}\nprint('done')")
    assert (ended.output, ended.status in statuses) == ("", True)


PROGRAMS = {
    "no setting of the kernel can be written": ("end\n", """
import os
for folder, _, names in os.walk("/proc/sys"):
    for path in (os.path.join(folder, name) for name in names):
        try:
            os.close(os.open(path, os.O_WRONLY))
            print(path)
        except OSError: pass
print("end")
"""),
    "a fork bomb makes no process": ("0\n", """
import os
made = 0
for _ in range(10_000):
    try:
        if os.fork() == 0:
            while True: pass
        made += 1
    except OSError: pass
print(made)
"""),
    "full pipes and sockets take far less than the address space": ("True\n", """
import os, socket
total, pinned = 0, []
def fill(write):
    global total
    try:
        while True: total += write(bytes(65536))
    except OSError: pass
try:
    while True:
        reading, writing = os.pipe()
        os.set_blocking(writing, False)
        pinned.append(reading)
        fill(lambda data: os.write(writing, data))
        os.close(writing)
except OSError: pass
for fd in pinned[30:]: os.close(fd)
try:
    while True:
        for end in socket.socketpair():
            end.setblocking(False)
            pinned.append(end)
            fill(end.send)
except OSError: pass
print(total < 50_000_000)
"""),
    "what programs of thought use still works": ("20\n", """
import asyncio, collections, datetime, decimal, fractions, functools, heapq, itertools, json, math, random, re
import statistics, string, sys, time
async def answer():
    await asyncio.sleep(0)
    return math.comb(6, 3)
print(asyncio.run(answer()))
""")}


@needs_bubblewrap
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_runs_to_its_end_and_says_what_it_could_do(name):
    output, program = PROGRAMS[name]
    ended = boxed(program, seconds=30)
    assert (ended.status, ended.output) == ("ok", output), ended


@needs_bubblewrap
@pytest.mark.parametrize("program", [
    "import mmap\npinned = [mmap.mmap(-1, 1 << 24) for _ in range(64)]",
    "import mmap\npinned = []\nwhile True:\n    pinned.append(mmap.mmap(-1, 1 << 20))", "b = bytearray(10**9)"])
def test_shared_and_private_memory_are_limited(program):
    ended = boxed(program, memory_mb=256)
    assert ended.status in ("memory", "error")
    assert "allocate memory" in ended.error or ended.status == "memory"


@needs_bubblewrap
def test_signals_do_not_reach_the_parent():
    got = []
    before = {s: signal.signal(s, lambda *a: got.append(a)) for s in (signal.SIGTERM, signal.SIGUSR1)}
    try:
        ended = boxed(f"""
import os, signal
for target in (os.getppid(), 1, {os.getpid()}, {os.getppid()}, -1):
    for number in (signal.SIGUSR1, signal.SIGTERM, signal.SIGKILL):
        try: os.kill(target, number)
        except OSError: pass
print("still here")
""")
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    assert not got
    assert ended.output in ("still here\n", "")


@needs_bubblewrap
@pytest.mark.parametrize("program", ["import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)",
    "import time\ntime.sleep(1000)", "input()\nwhile True: pass", "import signal\nsignal.pause()"])
def test_a_program_that_waits_is_ended(program):
    assert boxed(program, seconds=1).status in ("timeout", "error")


@needs_bubblewrap
@pytest.mark.parametrize("stream", [1, 2])
def test_endless_output_on_either_stream_ends_the_program(stream):
    ended = boxed(f"import os\nwhile True: os.write({stream}, b'x' * 65536)", output=1000, seconds=60)
    assert (ended.status, len(ended.output) <= 1000) == ("output", True)


@pytest.mark.parametrize("machine", MACHINES)
def test_the_filter_is_whole_instructions_and_fits_into_a_pipe(machine):
    size = len(filter_program(machine))
    assert (size % 8, size < 4096) == (0, True)


def test_the_numbers_are_those_of_this_machine_s_headers():
    headers = [Path("/usr/include") / name for name in ("x86_64-linux-gnu/asm/unistd_64.h", "asm-generic/unistd.h")]
    if not all(header.exists() for header in headers):
        pytest.skip("the kernel's headers are not installed")
    for column, header in enumerate(headers):
        known = dict(line.split()[1:3] for line in header.read_text().splitlines()
                     if line.startswith(("#define __NR_", "#define __NR3264_")) and len(line.split()) == 3)
        assert int(known.get("__NR3264_fcntl") or known["__NR_fcntl"]) == FCNTL[column]
        for name, numbers in REFUSED.items():
            assert int(known.get(f"__NR_{name}", numbers[column])) == numbers[column], name
