"""`python -m icestream` is the `icestream` command."""

from __future__ import annotations

from icestream.cli.main import main

if __name__ == "__main__":
    main()
