"""``keystead keys asyncapi``: the channels for tools that read AsyncAPI."""

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from keystead.cli.inventories import InventoryOption, load_inventory
from keystead.cli.output import emit, note
from keystead.cli.registries import RegistryOption
from keystead.errors import Invalid, NotFound


class DocumentFormat(StrEnum):
    """What an AsyncAPI document is written as."""

    YAML = "yaml"
    JSON = "json"


def asyncapi(
    inventory: InventoryOption = None,
    registry: RegistryOption = None,
    title: Annotated[str, typer.Option(metavar="TEXT", help="Title of the document.", show_default=False)] = "",
    version: Annotated[
        str, typer.Option("--api-version", metavar="TEXT", help="Version of the described API.")
    ] = "1.0.0",
    server: Annotated[
        str, typer.Option(metavar="URL", show_default=False,
                          help="Server to name in the document; user and password are left out.")
    ] = "",
    service: Annotated[
        str, typer.Option(metavar="NAME", show_default=False,
                          help="Only what this writer or reader sends and receives: the document of one program.")
    ] = "",
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write to this file.", show_default="standard output"),
    ] = None,
    format: Annotated[DocumentFormat, typer.Option("--format", help="YAML for people or JSON for programs.")] = (
        DocumentFormat.YAML),
) -> None:
    """Write the channels of an inventory as an AsyncAPI 3.0 document."""
    import yaml

    from keystead.inventory.asyncapi import to_asyncapi

    written = load_inventory(inventory, registry)
    document = to_asyncapi(written, title=title, version=version, server_url=server, service=service)
    if not document["channels"]:
        people = sorted({fact.value for entry in written.entries if entry.kind == "channel"
                         for fact in (*entry.writers, *entry.readers)})
        if service and people:
            raise NotFound(f"{service} writes or reads no channel; these do: {', '.join(people)}")
        if service and any(entry.kind == "channel" for entry in written.entries):
            raise NotFound(f"{written.name} does not say who writes or reads its channels; leave --service out")
        raise NotFound(f"{written.name} describes no channel")
    text = json.dumps(document, indent=2, ensure_ascii=False) + "\n" if format is DocumentFormat.JSON else (
        yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=110))
    if output is None:
        emit(text)
        return
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise Invalid(f"{output} cannot be written: {error.strerror}; name another file with -o") from error
    note(f"wrote {len(document['channels'])} channels to {output}")
