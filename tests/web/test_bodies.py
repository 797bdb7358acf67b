from keystead.web.bodies import again, content_of, is_whole, read_whole


def incoming(*messages):
    left = iter(messages)

    async def receive():
        return next(left)

    return receive


FIRST = {"type": "http.request", "body": b"one ", "more_body": True}
LAST = {"type": "http.request", "body": b"two"}
GONE = {"type": "http.disconnect"}


async def test_a_body_is_read_to_its_end_and_can_be_read_again():
    receive = incoming(FIRST, LAST, GONE)
    read = await read_whole(receive)
    assert is_whole(read) and content_of(read) == b"one two"
    once_more = again(read, receive)
    assert [await once_more() for _ in range(3)] == [FIRST, LAST, GONE]


async def test_one_whose_client_went_away_is_not_whole():
    read = await read_whole(incoming(FIRST, GONE))
    assert not is_whole(read) and content_of(read) == b"one "
