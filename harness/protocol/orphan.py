"""For children that read what a target sent: they end with the process that started them, however hard it died."""

from __future__ import annotations

import ctypes
import signal

#: PR_SET_PDEATHSIG of <linux/prctl.h>.
_SET_PARENT_DEATH_SIGNAL = 1


def end_with_parent() -> None:
    """Have the kernel kill this process when its parent dies.

    A watching thread would not do: a long match of a pattern lets no other thread run. A parent that died before shows
    as the end of stdin.
    """
    ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
