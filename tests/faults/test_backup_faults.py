"""Backups under load, in short; ``python -m tests.faults.backup_chaos`` is the whole of it."""

import pytest

from .backup_chaos import BackupChaos


def all_hold(reports):
    assert all(report.holds for report in reports), "\n\n".join("\n".join(report.lines()) for report in reports)


@pytest.mark.slow
async def test_a_backup_taken_under_load_goes_on_where_it_was(tmp_path):
    chaos = BackupChaos(tmp_path, touches=30, backups=2, days=60)
    reports = await chaos.run_all()
    all_hold(reports)
    assert len(reports) == 2 and all(report.accepted for report in reports)
    assert chaos.people_judged and chaos.tenants_judged


@pytest.mark.slow
@pytest.mark.cluster
@pytest.mark.xdist_group("cluster")
async def test_a_backup_of_a_cluster_taken_under_load_goes_on_where_it_was(tmp_path):
    chaos = BackupChaos(tmp_path, touches=20, backups=1, lanes=2, days=30)
    reports = await chaos.run_all()
    all_hold(reports)
    assert reports[0].accepted and chaos.people_judged and chaos.tenants_judged
