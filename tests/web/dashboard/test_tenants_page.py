"""Who shares the fair queue, and who is noisy."""

import pytest
from playwright.async_api import expect

from keystead.jobs import FairJobs, Jobs, Tenants, TenantView
from keystead.jobs.tenants import PAUSED, Pause
from keystead.patterns.fairqueue_values import Counts
from keystead.web.dashboard.tenants_page import TenantsLook, noisy, noisy_html, standing, tenant_row, totals_said

NOW = 1_800_000_000.0
LOUD = TenantView("loud", ready=40, asked=90.0, served=20.0, share=0.25)
QUIET = TenantView("quiet", ready=1, asked=10.0, served=10.0, share=0.125)


def look(*tenants: TenantView, **counts: int) -> TenantsLook:
    return TenantsLook(Counts(**counts), tenants, {})


def test_the_noisy_one_asks_for_more_than_all_the_others():
    assert noisy([LOUD, QUIET]) is LOUD
    assert noisy([LOUD]) is None, "nobody is disturbed"
    assert noisy([QUIET, TenantView("third", asked=10.0)]) is None
    waiting = TenantView("waiting", ready=30)
    assert noisy([waiting, TenantView("other", ready=2)]) is waiting, "asked long ago, and everything that waits"
    assert "90.0 %" in noisy_html(look(LOUD, QUIET)) and "25.0 %" in noisy_html(look(LOUD, QUIET))
    assert "30 jobs of the 32" in noisy_html(look(waiting, TenantView("other", ready=2)))
    assert noisy_html(look(QUIET)) == ""


def test_a_row_tells_shares_waiting_and_what_can_be_done():
    row = tenant_row(LOUD, NOW - 75, NOW, 100.0)
    assert "25.0 %" in row.cells[1] and "90.0 %" in row.cells[2] and row.cells[4] == "1 min 15 s"
    assert [action.name for action in row.actions] == ["pause"]
    paused = TenantView("<b>", dead=2, delayed=3, pauses=(Pause(PAUSED, NOW + 60),))
    row = tenant_row(paused, None, NOW, 0.0)
    assert "&lt;b&gt;" in row.cells[0] and "paused" in row.cells[0] and "2 given up" in row.cells[0]
    assert [action.name for action in row.actions] == ["resume", "retry"]
    other = TenantView("odd", pauses=(Pause("unpaid", NOW + 60),))
    assert [action.name for action in tenant_row(other, None, NOW, 0.0).actions] == ["pause"]


def test_what_is_to_know_first():
    assert standing(look(TenantView("a", pauses=(Pause(PAUSED, NOW),)))) == ("1 paused", "warn")
    assert standing(look(QUIET, dead=2)) == ("2 jobs given up", "warn")
    assert standing(look(QUIET, leased=1)) == ("Serving", "")
    assert standing(look(QUIET, ready=3)) == ("3 waiting", "")
    assert standing(look()) == ("Nothing waits", "idle")
    assert totals_said(look(ready=1, acked=7)).endswith("7 done so far")


@pytest.mark.browser
async def test_a_tenant_is_paused_after_a_question_and_resumed(tab, store):
    fair = FairJobs(Jobs(store))
    for _ in range(3):
        await fair.enqueue("acme", "nobody.runs_this", {}, delay_seconds=900)
    await tab.goto("/tenants")
    region = tab.get_by_role("region", name="Tenants")
    await region.get_by_role("button", name="Pause acme").click()
    await expect(tab.locator(".ks-dialog")).to_be_visible()
    await tab.keyboard.press("Escape")
    await expect(tab.locator(".ks-dialog")).to_be_hidden()
    tenants = Tenants(store, Jobs(store).clock)
    assert not (await tenants.get("acme")).paused
    await region.get_by_role("button", name="Pause acme").click()
    await tab.get_by_role("alertdialog").get_by_role("button", name="Pause acme").click()
    await expect(tab.locator(".ks-told")).to_have_text("acme is paused.")
    assert (await tenants.get("acme")).paused
    await region.get_by_role("button", name="Resume acme").click()
    await expect(tab.locator(".ks-told")).to_have_text("acme goes on.")
    assert not (await tenants.get("acme")).paused


@pytest.mark.browser
async def test_one_who_is_asked_for_is_shown_and_an_empty_queue_says_how_to_begin(tab, store):
    await tab.goto("/tenants")
    await expect(tab.locator(".ks-first")).to_contain_text("No tenant has asked for anything yet")
    await tab.goto("/tenants?tenant=nobody")
    await expect(tab.get_by_role("region", name="Tenants")).to_contain_text("nobody")
