"""Replies of the older protocol are understood as well."""

from keystead.keys.references_collections import scored_pairs
from keystead.keys.references_hashes import as_dict


def test_maps_and_scores_of_either_protocol() -> None:
    assert as_dict([b"a", b"1", b"b", b"2"]) == as_dict({b"a": b"1", b"b": b"2"})
    assert as_dict([]) == {}
    assert scored_pairs([b"a", b"1.5"]) == scored_pairs([[b"a", 1.5]]) == [(b"a", 1.5)]
    assert scored_pairs([]) == []
