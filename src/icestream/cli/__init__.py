"""The `icestream` command: one file per subcommand.

Nothing heavy is imported when these modules are (`icestream --help` must answer at once): a command imports what it
needs when it runs.
"""

from __future__ import annotations
