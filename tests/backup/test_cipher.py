"""Archives under a passphrase."""

import io

import pytest

from keystead.backup import cipher
from keystead.backup.cipher import MAGIC, OLD_MAGIC, PIECE_BYTES, SealedSink, SealedSource, read_passphrase
from keystead.errors import Invalid


@pytest.mark.parametrize("size", [0, 1, PIECE_BYTES - 1, PIECE_BYTES, PIECE_BYTES + 1, 2 * PIECE_BYTES, 2_500_000])
def test_what_was_sealed_is_opened_again(size):
    plain, file = bytes(range(256)) * (size // 256 + 1), io.BytesIO()
    sink = SealedSink(file, b"twelve bytes or more")
    for start in range(0, size, 300_000):
        sink.write(plain[start: min(size, start + 300_000)])
    sink.close()
    file.seek(0)
    assert file.getvalue().startswith(MAGIC)
    assert io.BufferedReader(SealedSource(file, b"twelve bytes or more")).read() == plain[:size]


def test_what_an_earlier_version_sealed_is_opened_too(monkeypatch):
    file = io.BytesIO()
    with monkeypatch.context() as patched:
        patched.setattr(cipher, "MAGIC", OLD_MAGIC)
        sink = SealedSink(file, b"twelve bytes or more")
        sink.write(b"content")
        sink.close()
    file.seek(0)
    assert file.getvalue().startswith(OLD_MAGIC)
    assert io.BufferedReader(SealedSource(file, b"twelve bytes or more")).read() == b"content"


def test_a_passphrase_comes_from_a_file(tmp_path):
    path = tmp_path / "passphrase"
    path.write_text("a good passphrase\n")
    assert read_passphrase(path) == b"a good passphrase"
    path.write_text("short\n")
    with pytest.raises(Invalid, match="12 or more"):
        read_passphrase(path)
    with pytest.raises(Invalid, match="cannot be read"):
        read_passphrase(tmp_path / "none")
