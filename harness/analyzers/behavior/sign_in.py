"""What programs that ask for a password do by themselves, and that a program of that sort was started.

`su`, `sudo` and the like look into the password digests and note who failed, whatever their caller wants; without
rights (nothing in a sandbox has any) that fails. What tells something is that they were started: a package that asks
to become root. Data with its source: Debian 12 and 13 (util-linux, linux-pam, sudo), whose `su` was recorded here when
`playwright install --with-deps` started it at an installation, in December 2026; their man pages name the files.
"""

from __future__ import annotations

import re

from harness.analyzers.behavior.attribution import Process

#: Programs that become another user, by name.
BECOMERS = frozenset({"su", "sudo", "doas", "pkexec", "runuser"})

#: The image's own programs that ask for a password; one of the same name elsewhere is somebody's own.
_PROGRAMS = re.compile(r"/(?:usr/)?s?bin/(?:su|sudo|doas|pkexec|runuser|passwd|unix_chkpwd)")
#: Digests of passwords and who may become root (pam_unix, sudo), and the books of logins (util-linux, pam_lastlog).
_FILES = re.compile(
    r"/etc/(?:shadow|gshadow|sudoers|sudoers\.d(?:/.*)?|sudo\.conf|doas\.conf)"
    r"|/var/log/(?:btmp|wtmp|lastlog|faillog|tallylog)|/(?:var/)?run/(?:utmp|sudo(?:/.*)?)"
)


def signing_in(path: str, process: Process, *, done: bool) -> bool:
    """True for an attempt on a file that this program of the image makes by itself, and that got it nothing."""
    return not done and _PROGRAMS.fullmatch(process.program) is not None and _FILES.fullmatch(path) is not None
