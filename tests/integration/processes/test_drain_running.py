"""A server that gets SIGTERM behind a load balancer: every request before its end is answered."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest
from long_forms import ALL
from processes import waits_until

from callslip.workers.supervision import services

DRAIN_SECONDS = 3.0


@pytest.mark.skipif(not ALL, reason="a part of `make test-all`")
def test_readyz_is_503_for_a_while_before_the_server_stops(tmp_path: Path) -> None:
    (port,) = services.free_ports(1)
    environ = {
        **{k: v for k, v in os.environ.items() if not k.startswith("CALLSLIP_")},
        "CALLSLIP_DATA_DIR": str(tmp_path),
        "CALLSLIP_API__PORT": str(port),
        "CALLSLIP_API__OPEN": "true",
        "CALLSLIP_API__DRAIN_SECONDS": str(DRAIN_SECONDS),
        "CALLSLIP_BROKER__URL": "redis://127.0.0.1:9/0",
        "CALLSLIP_STORE": "tfidf",
    }
    server = subprocess.Popen(
        (str(Path(sys.executable).with_name("callslip")), "run", "api"), env=environ, cwd=tmp_path
    )
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=10) as http:

        def answers() -> bool:
            try:
                return http.get("/healthz").status_code == 200
            except httpx.HTTPError:
                return False

        try:
            assert waits_until(answers, 120)
            assert "broker" in http.get("/readyz").json()["parts"]
            server.send_signal(signal.SIGTERM)
            begun = time.monotonic()
            stops = {"server": {"ready": False, "reason": "the server is about to stop"}}
            assert waits_until(lambda: http.get("/readyz").json()["parts"] == stops, 2)
            noticed, answered = time.monotonic() - begun, 0
            while time.monotonic() - begun < DRAIN_SECONDS - 0.5:
                assert http.get("/v1/collections").status_code == 200
                answered += 1
            assert server.wait(30) == 0
            sys.stdout.write(
                f"\n/readyz 503 after {noticed:.2f} s, {answered} requests answered meanwhile,"
                f" ended after {time.monotonic() - begun:.1f} s\n"
            )
        finally:
            server.kill()
            server.wait()
