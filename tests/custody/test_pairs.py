"""Records and the members that stand for them go together."""

from keystead.custody import Person, erase
from keystead.engine import Valkey
from keystead.inventory import Entry, Fact, Inventory

PAIRED = Inventory("keystead.toml", (
    Entry("sms:pending", type=Fact("zset"), extra=(("every member has", "sms:pending:{sid}"),)),
    Entry("sms:pending:{sid}", type=Fact("hash"), personal=Fact(True)),
))


async def test_member_goes_with_its_record(valkey: Valkey) -> None:
    for prefix in ("", "{msg:0}"):
        for sid, who in (("SM1", "user-4711"), ("SM2", "user-1")):
            await valkey.zadd(f"{prefix}sms:pending", {sid: 1})
            await valkey.hset(f"{prefix}sms:pending:{sid}", mapping={"to": who})
    await valkey.zadd("sms:pending", {"user-4711": 1})
    await valkey.hset("sms:pending:user-4711", mapping={"x": "y"})
    plan = await erase(valkey, PAIRED, Person(["user-4711"]))
    assert await valkey.zcard("sms:pending") == 3, "nothing is changed yet"
    done = await erase(valkey, PAIRED, Person(["user-4711"]), really=True)
    assert {(act.key, f"would have {act.did}") for act in done.acts} == {(act.key, act.did) for act in plan.acts}
    assert [act.pattern for act in done.acts].count("sms:pending") == 3, "each stands in the receipt"
    assert not any(act.failed for act in done.acts) and done.leftovers == ()
    for prefix in ("", "{msg:0}"):
        assert await valkey.zrange(f"{prefix}sms:pending", 0, -1) == [b"SM2"]
        assert await valkey.exists(f"{prefix}sms:pending:SM1", f"{prefix}sms:pending:SM2") == 1
