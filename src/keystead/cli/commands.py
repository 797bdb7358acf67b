"""The tree of commands. Each one's work lies in a module of its own and is imported when it runs."""

from pathlib import Path
from typing import Annotated

import typer

from keystead.cli import (
    admin,
    alerts,
    api,
    auditing,
    backup,
    configuration,
    contacts,
    demo,
    explaining,
    inventory,
    jobs,
    jobs_tail,
    keys_acl,
    keys_asyncapi,
    keys_code,
    keys_diff,
    keys_erase,
    keys_export,
    keys_import,
    keys_learn,
    keys_move,
    keys_top,
    keys_watch,
    message_channels,
    messages,
    reminders,
    stats,
    up,
    worker,
)
from keystead.cli.place import placed
from keystead.cli.session import SET, setting_pairs

program = typer.Typer(
    name="keystead",
    help="Every Valkey/Redis key declared once: documentation, live audits and a whole backend from it.",
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)
keys = typer.Typer(help="What may exist in the keyspace, and what does.", no_args_is_help=True)
program.add_typer(keys, name="keys")
queues = typer.Typer(help="What lies in the queues, and stepping in.", no_args_is_help=True)
program.add_typer(queues, name="jobs")
counted = typer.Typer(help="What is counted, and its charts.", no_args_is_help=True)
program.add_typer(counted, name="stats")
written = typer.Typer(help="Writing to people, and what became of it.", no_args_is_help=True)
program.add_typer(written, name="message")
reminded = typer.Typer(help="Daily reminders, and why one did not come.", no_args_is_help=True)
program.add_typer(reminded, name="reminders")
addresses = typer.Typer(help="Addresses of people.", no_args_is_help=True)
program.add_typer(addresses, name="contacts")
alarms = typer.Typer(help="What somebody should look at.", no_args_is_help=True)
program.add_typer(alarms, name="alerts")
admins = typer.Typer(help="Who may use the HTTP interface.", no_args_is_help=True)
program.add_typer(admins, name="admin")
admin_keys = typer.Typer(help="Keys of programs.", no_args_is_help=True)
admins.add_typer(admin_keys, name="key")
config = typer.Typer(help="What is set.", no_args_is_help=True)
program.add_typer(config, name="config")


def _print_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        print(f"keystead {version('keystead')}")
        raise typer.Exit


@program.callback(invoke_without_command=True)
def start(
    context: typer.Context,
    settings_file: Annotated[
        Path | None,
        typer.Option("--config", metavar="FILE", show_default="keystead.toml, if it is there",
                     help="Settings file (TOML)."),
    ] = None,
    settings_given: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", show_default=False,
                     help="Any setting, such as log.level=debug; may be given several times."),
    ] = None,
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version and stop.")
    ] = False,
) -> None:
    """Settings come from flags, then the environment (KEYSTEAD_HTTP_PORT=8500), then the settings file."""
    context.obj = settings_file
    context.meta[SET] = setting_pairs(settings_given)
    if context.invoked_subcommand is None:
        print(context.get_help())


program.command("up")(placed(up.up))
program.command("login-link")(placed(up.login_link))
program.command("token")(placed(up.token))
program.command("demo")(placed(demo.demo, by_url=False))
program.command("api")(placed(api.api))
program.command("worker")(placed(worker.worker))
program.command("backup")(placed(backup.backup))
program.command("restore")(placed(backup.restore))
keys.command("list")(inventory.list_keys)
keys.command("show")(inventory.show)
keys.command("docs")(inventory.docs)
keys.command("explain")(placed(explaining.explain))
keys.command("audit")(placed(auditing.audit))
keys.command("code")(keys_code.code)
keys.command("import")(keys_import.import_documents)
keys.command("asyncapi")(keys_asyncapi.asyncapi)
keys.command("learn")(placed(keys_learn.learn))
keys.command("top")(placed(keys_top.top))
keys.command("watch")(placed(keys_watch.watch))
keys.command("diff")(keys_diff.diff)
keys.command("erase")(placed(keys_erase.erase))
keys.command("export")(placed(keys_export.export))
keys.command("move")(keys_move.move)
keys.command("acl")(keys_acl.acl)
queues.command("list")(placed(jobs.list_jobs))
queues.command("ended")(placed(jobs.ended))
queues.command("recurring")(placed(jobs.recurring))
queues.command("show")(placed(jobs.show))
queues.command("tail")(placed(jobs_tail.tail))
queues.command("retry")(placed(jobs.retry))
queues.command("drop")(placed(jobs.drop))
queues.command("cancel")(placed(jobs.cancel))
queues.command("pause")(placed(jobs.pause))
queues.command("resume")(placed(jobs.resume))
counted.command("list")(stats.list_families)
counted.command("show")(placed(stats.show))
counted.command("rotate")(placed(stats.rotate))
written.command("send")(placed(messages.send))
written.command("list")(placed(messages.list_latest))
written.command("trace")(placed(messages.trace))
written.command("dead")(placed(messages.dead))
written.command("work")(placed(messages.work))
written.command("pause")(placed(message_channels.pause))
written.command("resume")(placed(message_channels.resume))
reminded.command("why")(placed(reminders.why))
addresses.command("import")(placed(contacts.import_file))
alarms.command("list")(placed(alerts.list_alerts))
alarms.command("ack")(placed(alerts.acknowledge))
alarms.command("test")(placed(alerts.test))
admins.command("end-sessions")(placed(admin.end_sessions))
admins.command("revoke-token")(placed(admin.revoke_token))
admin_keys.command("create")(placed(admin.create))
admin_keys.command("list")(placed(admin.list_keys))
admin_keys.command("revoke")(placed(admin.revoke))
config.command("show")(placed(configuration.show))
