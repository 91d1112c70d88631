"""Make the virtual environment; where Debian's venv module is missing, install it (root) or say how."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

if sys.version_info < (3, 11):  # noqa: UP036 - the message is for those who have an older one
    sys.exit(f"harness needs Python 3.11 or newer, this is {sys.version.split()[0]}: make PYTHON=python3.11 …")
folder = Path(sys.argv[1])
if (folder / "bin" / "python").exists():
    sys.exit(0)
try:
    import ensurepip  # noqa: F401
except ImportError:
    package = f"python3.{sys.version_info.minor}-venv"
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        sys.exit(f"Python has no venv module here: install {package} and run make again")
    print(f"installing {package}", file=sys.stderr)
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    subprocess.run(["apt-get", "update", "-qq"], check=True, env=quiet, stdout=subprocess.DEVNULL)
    subprocess.run(
        ["apt-get", "install", "-qqy", "--no-install-recommends", package],
        check=True,
        env=quiet,
        stdout=subprocess.DEVNULL,
    )
subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
