from __future__ import annotations

import os
import subprocess
from pathlib import Path

from icestream.config.environment import all_variables
from icestream.runtime.child import icestream_command


def test_connect_iceberg_opens_the_embedded_catalog_and_makes_the_namespaces(tmp_path: Path) -> None:
    """Nothing is asked of the source: it need not even be there."""
    environ = {name: value for name, value in os.environ.items() if name not in all_variables()}
    environ |= {
        "POSTGRES_URL": "postgresql://u@127.0.0.1:1/shop",
        "TABLES": "public.orders,sales.*,public.lines",
        "WAREHOUSE": str(tmp_path / "lake"),
    }
    done = subprocess.run(
        icestream_command("connect-iceberg"), env=environ, capture_output=True, text=True, timeout=200, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        f"ok: catalog 'icestream' with warehouse {tmp_path / 'lake'}",
        "ok: namespace public",
        "ok: namespace sales",
    ]
    assert (tmp_path / "lake" / "catalog.db").is_file()
