"""Thirty drifts of ten kinds between a document, fifty thousand keys and some code: all are found, and nothing else."""

import pytest

from keystead.engine import lookout
from keystead.inventory.code import read_code
from keystead.inventory.documents import read_document
from keystead.inventory.patterns import shape
from keystead.survey import Severity, compare, look_at

from .planted import Shop, thirty_drifts

pytestmark = pytest.mark.slow


async def audited(shop: Shop, server, tmp_path):
    document = tmp_path / "redis-keys.md"
    document.write_text(shop.document())
    for name, text in shop.code().items():
        file = tmp_path / "src" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    async with lookout(server.url) as look:
        commands = shop.commands()
        for start in range(0, len(commands), 5000):
            await look.nodes[0].call_block(commands[start : start + 5000])
        described = read_document(document)
        live, reasons = await look_at(look, described)
    assert reasons == ()
    findings = compare(described, live, read_code([tmp_path / "src"]))
    return live, [found for found in findings if found.severity.at_least(Severity.WARNING)]


def told(findings):
    return {(found.kind.label, shape(found.pattern)) for found in findings}


async def test_shop_that_agrees_gives_no_alarm(valkey_server, valkey, tmp_path):
    live, findings = await audited(Shop(), valkey_server, tmp_path)
    assert live.tally.keys > 50_000
    assert told(findings) == set(), [(found.kind.label, found.pattern, found.says) for found in findings]


async def test_every_planted_drift_is_found_and_nothing_else(valkey_server, valkey, tmp_path):
    shop = thirty_drifts()
    assert len(shop.planted) == 30
    live, findings = await audited(shop, valkey_server, tmp_path)
    assert live.tally.keys > 50_000
    planted = {(kind, shape(pattern)) for kind, pattern in shop.planted}
    assert told(findings) == planted, {
        "missed": planted - told(findings),
        "too much": [(found.kind.label, found.pattern, found.says) for found in findings
                     if (found.kind.label, shape(found.pattern)) not in planted],
    }
