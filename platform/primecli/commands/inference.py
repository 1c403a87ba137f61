"""`prime chat` and `prime inference`: one question to a served model, and which models answer."""

from typing import Annotated, Any

import typer

from primecli.output import OutputFormat, OutputOption, usd
from primecli.session import Session, session_of

app = typer.Typer(no_args_is_help=True, help="The OpenAI-compatible endpoint.")


@app.command("models")
def models(ctx: typer.Context, output: OutputOption = OutputFormat.TABLE) -> None:
    """List the models that answer: base models and the team's deployed adapters."""
    cli = session_of(ctx, output)
    reply = cli.client.get(f"{cli.config.inference_url}/models")
    columns = [
        ("model", lambda row: row["id"]),
        ("input", lambda row: usd((row.get("pricing") or {}).get("input_usd_per_mtok"))),
        ("output", lambda row: usd((row.get("pricing") or {}).get("output_usd_per_mtok"))),
    ]
    cli.terminal.table(reply, reply["data"], columns, empty="no model is served")


@app.command("chat")
def chat(
    ctx: typer.Context,
    model: Annotated[str, typer.Argument(help="A base model, or base:adapter_id.")],
    prompt: Annotated[str, typer.Argument(help="What to say.")],
    system: Annotated[str | None, typer.Option("--system", help="System message.")] = None,
    stream: Annotated[bool, typer.Option("--stream", help="Print tokens as they come.")] = False,
    max_tokens: Annotated[int | None, typer.Option("--max-tokens", min=1)] = None,
    temperature: Annotated[float | None, typer.Option("--temperature", min=0.0)] = None,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Ask a served model one question."""
    cli = session_of(ctx, output)
    messages = [{"role": "system", "content": system}] if system else []
    body: dict[str, Any] = {"model": model, "messages": [*messages, {"role": "user", "content": prompt}]}
    body |= {key: value for key, value in (("max_tokens", max_tokens), ("temperature", temperature)) if value is not None}
    if stream:
        return _stream(cli, body | {"stream": True})
    reply = cli.client.post(f"{cli.config.inference_url}/chat/completions", body)
    cli.terminal.data(reply)
    if not cli.terminal.is_json:
        cli.terminal.out.print(reply["choices"][0]["message"]["content"], markup=False)
    return None


def _stream(cli: Session, body: dict[str, Any]) -> None:
    """Text as it comes; in JSON mode each chunk is one line."""
    for event in cli.client.stream("POST", f"{cli.config.inference_url}/chat/completions", body=body):
        if not isinstance(event.data, dict):
            continue
        if cli.terminal.is_json:
            cli.terminal.line(event.data, "")
            continue
        for choice in event.data.get("choices", []):
            delta = choice.get("delta", {})
            if delta.get("reasoning_content"):
                cli.terminal.err.print(delta["reasoning_content"], end="", markup=False)
            cli.terminal.out.print(delta.get("content") or "", end="", markup=False)
    if not cli.terminal.is_json:
        cli.terminal.out.print()
