from keystead.inventory.documents import vocabulary
from keystead.inventory.models import SERVER_TYPES


def test_phrases_are_in_lower_case_and_types_are_known():
    phrases = [
        *(phrase for words in vocabulary.COLUMNS.values() for phrase in words),
        *(phrase for words in vocabulary.TYPE_NAMES.values() for phrase in words),
        *vocabulary.NEVER,
        *vocabulary.SLIDING,
        *vocabulary.AT_MOST,
        *vocabulary.UNTIL,
        *vocabulary.ASIDE,
        *vocabulary.OPAQUE,
    ]
    assert [phrase for phrase in phrases if phrase != phrase.lower() or not phrase.strip()] == []
    assert set(vocabulary.TYPE_NAMES) <= {*SERVER_TYPES, "channel"}
    assert set(vocabulary.COMMAND_TYPES.values()) <= {*SERVER_TYPES, "channel"}
