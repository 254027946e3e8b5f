"""A llama.cpp server on loopback, for `make demo-llm` and `make test-llm`.

It is started as a script by the Python of an environment that has xllamacpp and nothing of
Blindspot: `serve_model.py GGUF PORT`. Prints its address once it answers, and ends when its
standard input ends, so that it never outlives the process that started it.
"""

import os
import sys
from pathlib import Path

import xllamacpp

# Calls at the same time, and tokens of prompt and reply in each. The server refuses a longer prompt
# with an error instead of cutting it.
SLOTS, CONTEXT = 2, 8_192


def main(gguf: Path, port: int) -> None:
    """Serve a model until standard input ends."""
    params = xllamacpp.CommonParams()
    params.model.path = str(gguf)
    params.model_alias = {gguf.stem}
    params.n_parallel, params.n_ctx = SLOTS, SLOTS * CONTEXT
    # By default it keeps what it reckoned for earlier prompts, up to 8 GB of memory.
    params.cache_ram_mib = 0
    # More threads wait for each other in a loop, and are slower where anything else runs.
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.hostnames, params.port = ["127.0.0.1"], port
    params.ui = False
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    sys.stdin.read()
    # At once: the server would first finish what it was asked.
    os._exit(0)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
