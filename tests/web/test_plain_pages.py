"""Pages without a dashboard behind them."""

from keystead.web.plain_pages import exchange_page, login_needed_page, plain_page, refused_ticket_page

HOSTILE = '"><script>alert(1)</script>'


def text(response):
    return response.body.decode()


def test_what_came_from_outside_is_escaped():
    assert HOSTILE not in text(exchange_page(HOSTILE, HOSTILE))
    assert HOSTILE not in text(login_needed_page(HOSTILE))
    assert HOSTILE not in text(refused_ticket_page(HOSTILE, HOSTILE, status=401))


def test_nothing_is_loaded():
    for page in (exchange_page("t", "/"), login_needed_page("/"), plain_page("x", "y")):
        assert "http://" not in text(page) and "https://" not in text(page) and "src=" not in text(page)


def test_pages_are_not_kept():
    assert plain_page("x", "y").headers["cache-control"] == "no-store"


def test_exchange_works_without_scripts():
    page = text(exchange_page("t", "/"))
    assert '<form method="post" action="/login">' in page and "<button" in page
