"""The gateway's life: set up with privileges, drop them, then serve until stdin ends or the harness says stop."""

from __future__ import annotations

import os
import sys

from sinkhole.setup import SetupError, drop_privileges, prepare
from sinkhole.wire import encode


def main() -> None:
    """Run. Exit code 0 after an orderly end, 1 when the machine lacks something (told in a frame)."""
    wanted = sys.argv[1] if len(sys.argv) > 1 else "auto"
    if wanted == "cable":
        from sinkhole import cable

        cable.main()
        return
    try:
        prepared = prepare(wanted, apart="apart" in sys.argv[2:])
        drop_privileges()
    except (SetupError, OSError) as error:
        os.write(1, encode({"kind": "failed", "reason": str(error)}))
        sys.exit(1)
    # Only now: none of what is imported here has ever run with privileges.
    from sinkhole.service import serve

    serve(prepared)
