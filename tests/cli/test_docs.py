import subprocess
import sys

from keystead.cli import docs


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "keystead.cli.docs", *arguments], capture_output=True, text=True,
                          check=False)


def test_pages_are_written_once_and_then_current(tmp_path):
    folder = tmp_path / "docs"
    assert docs.stale_pages(folder) == sorted(docs.PAGES)
    assert docs.write_pages(folder) == sorted(docs.PAGES)
    assert docs.stale_pages(folder) == []
    assert docs.write_pages(folder) == []


def test_a_changed_page_is_found_and_mended(tmp_path):
    docs.write_pages(tmp_path)
    (tmp_path / "settings.md").write_text("old")
    checked = run(str(tmp_path), "--check")
    assert checked.returncode == 1
    assert "settings.md is stale" in checked.stdout
    assert (tmp_path / "settings.md").read_text() == "old"
    assert run(str(tmp_path)).returncode == 0
    assert run(str(tmp_path), "--check").returncode == 0


def test_commands_page_lists_defaults_choices_and_switches():
    page = docs.commands_page()
    assert "| `--keys-per-second KEYS` | `20000` | Look at no more keys than this in a second. |" in page
    assert r"`--format table\|json` | `table` |" in page
    assert "| `--values`, `--no-values` | `--values` |" in page
    assert "| `PATTERN` | required |" in page


def test_settings_page_has_choices_and_environment_names():
    page = docs.settings_page()
    assert "`KEYSTEAD_HTTP_PORT` | `8400` |" in page
    assert "one of `always`, `everysec`, `no`" in page


def test_keys_page_is_the_inventory():
    assert "`api_ip:{ip}`" in docs.keys_page()


def test_page_of_families_tells_every_event_and_what_must_hold():
    page = docs.families_page()
    assert "## `sms_events`" in page and "**failed** (message status)" in page
    assert "found + unknown = attempted" in page and "`ps:stats:sms_events:daily`" in page
    assert "by day as its caller says" in page and "1 month later" in page and "`stats:sms_send:send_job`" in page
