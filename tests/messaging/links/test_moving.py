"""What is read from the buffer is stored in batches that keep a link together with its clicks."""

from keystead.messaging.links.models import BufferedLink, Click, TrackType
from keystead.messaging.links.moving import Moving, in_batches, read_moving

from .room import Room, on_sqlite


def moving(code: str, clicks: int) -> Moving:
    return Moving(code, BufferedLink("utl_1", code, "tch_1", "home", 1.0),
                  [Click(f"utlc_{place:010}", 1.0, TrackType.ON_CLICK) for place in range(clicks)])


def test_a_batch_has_about_a_hundred_rows_and_splits_no_link() -> None:
    sizes = [30, 40, 27, 500, 0, 3]
    batches = [[len(each.clicks) for each in batch]
               for batch in in_batches([moving(f"c{place}", size) for place, size in enumerate(sizes)])]
    assert batches == [[30, 40, 27], [500], [0, 3]]


def test_nothing_is_no_batch() -> None:
    assert list(in_batches([])) == []


@on_sqlite
async def test_links_are_read_with_their_clicks_and_missing_ones_are_told(wide_room: Room) -> None:
    room = wide_room
    links = [await room.link() for _ in range(15)]
    await room.links.click(links[3].code)
    found = await read_moving(room.valkey, [*(link.code for link in links), "gone"])
    assert [each.link for each in found] == [*links, None]
    assert [len(each.clicks) for each in found] == [0, 0, 0, 1, *[0] * 12]
