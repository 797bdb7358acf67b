"""The registry: what may exist in the keyspace. Pure, no input or output."""

from keystead.keys.codecs import FLOAT, INTEGER, RAW, TEXT, Codec, Gzip, JsonCodec, Undecodable, Zstd, codec_of
from keystead.keys.declarations import (
    Channel,
    ChannelPattern,
    FlagKey,
    GeoKey,
    IntegerKey,
    ListKey,
    LockKey,
    LockKind,
    MapKey,
    OpaqueNamespace,
    RecordKey,
    SetKey,
    SortedSetKey,
    StreamKey,
    StringKey,
)
from keystead.keys.executor import Argument, Command, Executor, Reply
from keystead.keys.frames import Frame, Integer, Rest, Sized, Trailing
from keystead.keys.keyspace import Declaration, Keyspace, OnCorrupt, Pair, Personal
from keystead.keys.layout import Layout
from keystead.keys.references import KeyReference, Reference
from keystead.keys.references_collections import ListRef, SetRef, SortedSetRef
from keystead.keys.references_hashes import MapRef, RecordRef
from keystead.keys.references_streams import ChannelRef, GeoRef, Place, StreamRef
from keystead.keys.references_values import FlagRef, IntegerRef, LockRef, StringRef
from keystead.keys.registry import Match, Registry
from keystead.keys.slots import SLOTS, hash_tag, key_slot
from keystead.keys.tags import Lane, Tag
from keystead.keys.ttl import NO_TTL, AtMost, Exactly, NoneUntilEnded, NoTtl, Sliding, Ttl, Until
from keystead.keys.variables import KINDS, Kind, Matching, OneOf, Value

__all__ = [
    "Argument",
    "AtMost",
    "Channel",
    "ChannelPattern",
    "ChannelRef",
    "Codec",
    "Command",
    "Declaration",
    "Exactly",
    "Executor",
    "FLOAT",
    "FlagKey",
    "FlagRef",
    "Frame",
    "GeoKey",
    "GeoRef",
    "Gzip",
    "INTEGER",
    "Integer",
    "IntegerKey",
    "IntegerRef",
    "JsonCodec",
    "KINDS",
    "KeyReference",
    "Keyspace",
    "Kind",
    "Lane",
    "Layout",
    "ListKey",
    "ListRef",
    "LockKey",
    "LockKind",
    "LockRef",
    "MapKey",
    "MapRef",
    "Match",
    "Matching",
    "NO_TTL",
    "NoTtl",
    "NoneUntilEnded",
    "OnCorrupt",
    "OneOf",
    "OpaqueNamespace",
    "Pair",
    "Personal",
    "Place",
    "RAW",
    "RecordKey",
    "RecordRef",
    "Reference",
    "Registry",
    "Reply",
    "Rest",
    "SLOTS",
    "SetKey",
    "SetRef",
    "Sized",
    "Sliding",
    "SortedSetKey",
    "SortedSetRef",
    "StreamKey",
    "StreamRef",
    "StringKey",
    "StringRef",
    "TEXT",
    "Tag",
    "Trailing",
    "Ttl",
    "Undecodable",
    "Until",
    "Value",
    "Zstd",
    "codec_of",
    "hash_tag",
    "key_slot",
]
