import time

from keystead.survey.findings import Drift
from keystead.survey.stride import PAGE_KEYS, Stride
from keystead.survey.values import EXAMPLES, Faults, Seen, Values

from ..operations import shop

REGISTRY = shop.registry()


async def seen(valkey, *keys: str) -> list[Seen]:
    return [Seen(key.encode(), REGISTRY.resolve(key.encode()), await valkey.memory_usage(key)) for key in keys]


async def test_what_does_not_decode_is_told_with_a_few_examples(valkey):
    for number in range(10):
        await valkey.set(f"price:{number}", "{broken", ex=60)
    await valkey.set("price:good", '{"cents": 30}', ex=60)
    faults = Faults()
    values = Values(valkey, Stride(), faults)
    await values.check(await seen(valkey, *(f"price:{number}" for number in range(10)), "price:good"))
    [finding] = faults.findings()
    assert (finding.kind, finding.pattern, finding.keys) == (Drift.UNREADABLE, "price:{sku}", 10)
    assert len(finding.examples) == EXAMPLES and finding.says.startswith("10 keys: ")


async def test_a_key_that_has_just_gone_is_not_judged(valkey):
    await valkey.set("price:tea", "{broken", ex=60)
    known = await seen(valkey, "price:tea")
    await valkey.delete("price:tea")
    faults = Faults()
    await Values(valkey, Stride(), faults).check(known)
    assert faults.findings() == ()


async def test_reading_slowly_makes_the_pages_of_the_walk_smaller(valkey, monkeypatch):
    await valkey.set("price:tea", '{"cents": 30}', ex=60)
    stride = Stride()
    stride.pinged(0.0, time.monotonic())
    values, ask = Values(valkey, stride, Faults()), valkey.call_block

    async def slowly(*given, **named):
        time.sleep(0.1)
        return await ask(*given, **named)

    monkeypatch.setattr(valkey, "call_block", slowly)
    await values.check(await seen(valkey, "price:tea"))
    assert stride.page_keys < PAGE_KEYS and stride.rest_seconds(time.monotonic()) > 0
