"""What lies in the list of files reads as it always did."""

import json

from keystead.store.keys import FILES_PURGATORY
from keystead.store.models import PurgeEntry

KEPT = (
    (b'{"bucket": "bucket-name", "key": "path/to/file"}', PurgeEntry(bucket="bucket-name", key="path/to/file")),
    (b'{"bucket":"b","expected":true,"hint":"replaced","key":"k"}',
     PurgeEntry(bucket="b", key="k", expected=True, hint="replaced")),
)


def test_kept_samples_decode() -> None:
    for raw, entry in KEPT:
        assert FILES_PURGATORY.codec.decode(raw) == entry


def test_an_entry_has_one_spelling_with_sorted_fields() -> None:
    for entry in (one for _, one in KEPT):
        raw = FILES_PURGATORY.codec.encode(entry)
        assert raw == json.dumps(json.loads(raw), sort_keys=True, separators=(",", ":")).encode()
    assert FILES_PURGATORY.codec.encode(PurgeEntry(key="k", bucket="b")) == b'{"bucket":"b","key":"k"}'
