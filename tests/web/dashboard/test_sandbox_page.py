"""The page of the sandbox, in a browser."""

import pytest
from playwright.async_api import expect

from keystead.clock import SystemClock
from keystead.messaging.sandbox import FaultBoard, Ledger, Message, Outbox
from keystead.messaging.sandbox.models import Step


async def send(store, channel, to, **facts):
    now = SystemClock().now()
    last = {"sms": "delivered", "push": "ok", "email": "Delivery"}[channel]
    message = Message(f"m-{channel}-{to}", channel, to, now, (Step("queued", now), Step(last, now)), **facts)
    await Ledger(store, SystemClock()).accept(channel, [message])


@pytest.mark.browser
async def test_people_and_what_they_got_appear_by_themselves(page, store):
    await page.get_by_role("link", name="Sandbox", exact=True).click()
    await expect(page.locator(".ks-first")).to_contain_text("Nothing has been sent yet")
    await send(store, "sms", "+15550001", text="Your class is ready")
    await expect(page.locator(".sb-bubble p")).to_have_text("Your class is ready")
    await expect(page.locator(".ks-first")).to_be_hidden()
    await send(store, "push", "ExponentPushToken[ada]", title="A moment", text="for you")
    await page.get_by_role("button", name="ada").click()
    await expect(page.locator(".sb-push")).to_contain_text("A moment")
    await send(store, "email", "ada@example.com", title="Reminder", text="plain", html="<h1>Good morning</h1>")
    await page.get_by_role("button", name="ada@example.com").click()
    await expect(page.frame_locator(".sb-mail iframe").locator("h1")).to_have_text("Good morning")
    await page.get_by_label("Find an address").fill("+1555")
    await expect(page.locator(".sb-row")).to_have_count(1)
    await page.get_by_label("Find an address").fill("nobody")
    await expect(page.get_by_text("Nobody like that.")).to_be_visible()


@pytest.mark.browser
async def test_one_can_answer_as_the_person(page, store):
    await send(store, "sms", "+15550001", text="hello")
    await send(store, "sms", "+15550002", text="to another")
    await page.goto("/sandbox?channel=sms&to=%2B15550001")
    await page.get_by_label("Answer", exact=True).fill("STOP")
    await page.get_by_label("Answer", exact=True).press("Enter")
    await expect(page.locator(".sb-bubble.theirs p")).to_have_text("STOP")
    assert "inbound" in [each.direction for each in await Outbox(store).messages("sms", "+15550001")]
    assert (await Outbox(store).counts())["sms:received"] == 1


@pytest.mark.browser
async def test_faults_are_turned_by_sliders(page, store):
    await page.goto("/sandbox")
    await expect(page.locator(".ks-state")).to_have_text("No faults")
    await page.locator(".sb-faults > summary").click()
    slider = page.get_by_label("Throttled (429)")
    await slider.focus()
    for _ in range(3):
        await slider.press("ArrowRight")
    await expect(page.locator(".ks-state")).to_have_text("1 fault on")
    board = FaultBoard(store)
    await board.refresh()
    assert 0 < board.of("sms").throttle <= 0.03
    await board.change("email", {"lost": 0.5})
    await expect(page.locator(".ks-state")).to_have_text("2 faults on")
    await page.get_by_role("button", name="Turn all faults").click()
    await expect(page.locator(".ks-state")).to_have_text("No faults")
