"""Runs a command and writes what it took: `python measured_run.py OUT SECONDS COMMAND…`.

OUT gets JSON: exit code, peak memory in bytes of the command itself (`own`) and of it or the largest process it
waited for (`peak`), and whether it was killed after SECONDS. Small on purpose, and a process of its own: Linux counts
the memory of whoever forked into the peak of what is executed, so a measurement from within pytest would show pytest.
"""

import json
import os
import signal
import sys
import time


def own_peak(pid: int) -> int:
    """The kernel's high-water mark of one process, in bytes; 0 once it has ended."""
    try:
        with open(f"/proc/{pid}/status") as status:
            return next((int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM")), 0)
    except (OSError, ValueError):
        return 0


out, seconds, command = sys.argv[1], float(sys.argv[2]), sys.argv[3:]
child = os.fork()
if child == 0:
    os.execvp(command[0], command)
end = time.monotonic() + seconds
own, killed = 0, False
while True:
    done, status, used = os.wait4(child, os.WNOHANG)
    if done:
        break
    own = max(own, own_peak(child))
    if not killed and time.monotonic() > end:
        killed = True
        os.kill(child, signal.SIGKILL)
    time.sleep(0.02)
with open(out, "w") as file:
    code = os.waitstatus_to_exitcode(status)
    json.dump({"code": code, "peak": used.ru_maxrss * 1024, "own": own, "killed": killed}, file)
