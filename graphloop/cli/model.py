"""Which model a run asks: what was given, else what the environment has a key for, else a script.

The order: `--script`, `--model`, GRAPHLOOP_MODEL, `--base-url`, an Anthropic key, an OpenAI
key or URL, the `script.yaml` beside the target. Never a silent choice between asking and replaying.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import final

from ..errors import ConfigError

__all__ = ["ModelChoice", "choose_model"]

ANTHROPIC = "anthropic:claude-opus-4-8"
OPENAI = "openai:gpt-5"
SCRIPT = "script:"


@final
@dataclass(frozen=True, slots=True)
class ModelChoice:
    """The model's name, and what the user should be told about the choice."""

    model: str
    notice: str = ""


def choose_model(
    *,
    model: str | None,
    script: str | None,
    base_url: str | None,
    environ: Mapping[str, str],
    beside: Path | None,
) -> ModelChoice:
    """Return the model to ask.

    Args:
        model: what `--model` says.
        script: what `--script` says.
        base_url: what `--base-url` says.
        environ: usually `os.environ`.
        beside: the script next to the target, if there is one.

    Raises:
        ConfigError: there is nothing to choose from, or two choices exclude each other.
    """
    if script is not None:
        if model is not None:
            raise ConfigError(
                f"expected --script or a model, found both ({script} and {model}): leave one out."
            )
        return ModelChoice(_script(script))
    if model := model or environ.get("GRAPHLOOP_MODEL"):
        path = model.removeprefix(SCRIPT)
        return ModelChoice(model if path == model else _script(path))
    if base_url is not None:
        return ModelChoice(OPENAI)
    if environ.get("ANTHROPIC_API_KEY"):
        return ModelChoice(ANTHROPIC)
    if environ.get("OPENAI_API_KEY") or environ.get("OPENAI_BASE_URL"):
        return ModelChoice(OPENAI)
    if beside is not None:
        return ModelChoice(
            _script(beside),
            f"no API key found: replaying {beside}; "
            "set ANTHROPIC_API_KEY or use --model to ask a real model",
        )
    raise ConfigError(
        "expected a model to ask, found no API key: set ANTHROPIC_API_KEY or OPENAI_API_KEY, or "
        "use --base-url for a server of your own, or --script for recorded replies."
    )


def _script(path: str | Path) -> str:
    """Return the model that replays a script, from wherever its run is taken up again."""
    return f"{SCRIPT}{Path(path).absolute()}"
