"""A real language model for the example project: its server, its endpoint, and runs over ten items.

The model that `make demo-llm` fetches is a toy of 135 million parameters. It shows runs, replies
and causes of missing replies as they are, and it is blind to most errors.
"""

import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings
from django.utils.text import slugify

from annotation.models import Project
from judging.evaluators.presets import load_presets
from judging.models import Endpoint, Run
from judging.runs import selection, start
from judging.runs.lifecycle import RunConfig

SERVER = settings.BASE_DIR / "requirements" / "serve_model.py"
TOY = "SmolLM2-135M-Instruct.Q4_1"
STRATEGIES = ("vanilla", "pairwise", "reference")
ITEMS, SEED = 10, 0
TOY_NOTE = (
    "A toy of 135 million parameters. It shows how a run goes; its verdicts say nothing about "
    "evaluators that anybody would use."
)


class NoServer(RuntimeError):
    """The model's server does not start; the message says why and what to do."""


@dataclass(frozen=True)
class LocalModel:
    """A model in a file, the Python that has llama.cpp, the port to serve it at, and the file for
    the server's messages."""

    gguf: Path
    python: Path
    port: int
    log: Path

    @property
    def is_toy(self) -> bool:
        return self.gguf.stem == TOY


@contextmanager
def running_server(model: LocalModel) -> Iterator[str]:
    """Serve a model on loopback, and give the base URL of its API. The server ends with the block,
    or with this process, however that ends. Raises `NoServer`."""
    _check_files(model)
    _check_port(model.port)
    command = [str(part) for part in (model.python, SERVER, model.gguf, model.port)]
    with (
        model.log.open("wb") as log,
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
        ) as server,
    ):
        # The end of its standard input ends the server.
        assert server.stdin is not None
        assert server.stdout is not None
        try:
            address = next((line for line in server.stdout if line.startswith("http")), "").strip()
            if not address:
                raise NoServer(
                    f"The server of {model.gguf.name} ended before it answered. Its last words are "
                    f"in {model.log}; a file that is no GGUF, or too little memory, is the likely "
                    "cause."
                )
            yield f"{address}/v1"
        finally:
            server.stdin.close()
            try:
                server.wait(10)
            except subprocess.TimeoutExpired:
                server.kill()


def _check_files(model: LocalModel) -> None:
    if not model.gguf.is_file():
        raise NoServer(f"There is no file {model.gguf}. Give the path of a model as GGUF=path.")
    if not model.python.exists():
        raise NoServer(f"There is no {model.python}. Start this with `make demo-llm`.")


def _check_port(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise NoServer(
                f"Port {port} is taken, and the model would be served there. Stop the program that "
                "uses it, or choose another port with MODEL_PORT=8091."
            ) from error


def get_endpoint(model: LocalModel, address: str) -> Endpoint:
    """Get or create the endpoint of a served model. One at another address or of another model
    stays as it is, since its runs pin them, and a new one has the model and the port in its
    name."""
    endpoint = Endpoint.objects.filter(address=address, model=model.gguf.stem).first()
    if endpoint:
        return endpoint
    name = "local"
    if Endpoint.objects.filter(name=name).exists():
        name = f"{name}-{slugify(model.gguf.stem)[:60]}-{model.port}"
    own = {
        "name": name,
        "address": address,
        "model": model.gguf.stem,
        # Without a penalty, a small model repeats a sentence until the tokens run out.
        "parameters": {"max_tokens": 400, "frequency_penalty": 1},
    }
    return Endpoint.objects.create(**{**load_presets()["this-machine"].values, **own})


def start_runs(project: Project, endpoint: Endpoint, note: str) -> list[Run]:
    """Start a run of each of STRATEGIES over the same ten items, unless the endpoint has runs in
    this project. Raises `Refused`."""
    if Run.objects.in_project(project).filter(endpoint=endpoint).exists():
        return []
    wish = start.NewRuns(
        strategies=[selection.get_strategy_version(slug) for slug in STRATEGIES],
        endpoints=[endpoint],
        config=RunConfig(seed=SEED, limit=ITEMS, note=note),
    )
    return start.start_runs(project, wish, None)
