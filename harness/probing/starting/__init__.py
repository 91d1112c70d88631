"""Starting what does not start as its metadata says: from what an attempt showed to what the next one changes.

One module a kind of remedy, each a pure function from a `Case` to proposals in the order of their likelihood;
`planner` asks them in turn. Measured on 100 popular servers: of 46 that did not start untouched, 18 lacked a variable
or a flag, 9 a subcommand, 4 a configuration file, 4 an argument, 4 had outdated code, 2 spoke another transport.
"""

from harness.probing.starting.case import StartFacts
from harness.probing.starting.planner import StartPlanner

__all__ = ["StartFacts", "StartPlanner"]
