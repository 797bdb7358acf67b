"""The number of lanes, on which all processes of a cluster must agree: each computes for itself where a person is."""

from keystead.engine import Valkey
from keystead.errors import Invalid
from keystead.keys import Layout
from keystead.messaging.sending.keys import LANES


async def agree_on_lanes(valkey: Valkey) -> None:
    """Note how many lanes there are, or find it noted. ``Invalid`` if others use another number. Nothing is noted on
    one server, which has no lanes."""
    if valkey.layout is Layout.PLAIN:
        return
    name, ours = LANES.at().name(valkey.layout), valkey.layout.lanes
    agreed: int = await valkey.run(
        ("SET", name, ours, "NX", "GET"), lambda reply: ours if reply is None else int(reply), repeat=True
    )
    if agreed != ours:
        raise Invalid(
            f"this cluster is used with messaging.lanes {agreed}, and this process was told {ours}: messages would be "
            f"looked for where they are not. To change it, let all messages end, stop every process, and delete the "
            f"key {name.decode()}"
        )
