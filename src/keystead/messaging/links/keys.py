"""Every key of trackable links. What is counted of them is in ``stats.py``."""

from typing import Final

from keystead.keys import (
    Exactly,
    IntegerKey,
    Keyspace,
    ListKey,
    Matching,
    OnCorrupt,
    Pair,
    Personal,
    RecordKey,
    SortedSetKey,
    StringKey,
)
from keystead.messaging.links.models import BufferedLink, Click, ClickIndex, DelayedClick
from keystead.patterns import DelayedSet, SmartLock

LINKS = Keyspace("messaging.links", tag="lnk")

CODE_WINDOW_SECONDS: Final = 3
FLOOD_WINDOW_SECONDS: Final = 5
WARNING_SECONDS: Final = 3600

CODE: Final = Matching(
    "link code", r"[A-Za-z0-9_-]{1,255}", examples=("Qm3x", "x", "k3Xw-0aVq9ZrT1bNcY7p_w"),
    says="1 to 255 letters, digits, _ or -",
)
CLICK_UID: Final = Matching(
    "click", r"utlc_[A-Za-z0-9_-]{10,60}", examples=("utlc_k3Xw-0aVq9ZrT1bNcY7p_w",),
    says="utlc_ and 10 to 60 letters, digits, _ or -",
)
_OF_CODE: Final = {"code": CODE}
_OF_CLICK: Final = {"uid": CLICK_UID}
_CREATOR: Final = ("messaging.links.creator",)
_CLICKS: Final = ("messaging.links.clicks",)
_PERSISTER: Final = ("messaging.links.persister",)
_DELAYED: Final = ("messaging.links.delayed_clicks",)
_LEAKS: Final = ("messaging.links.leaks",)
_LINKS: Final = ("messaging.links.links",)
_CREATE, _CLICK, _PERSIST, _ABANDON, _LEAK, _LEAK_END = (
    f"links/{verb}.lua" for verb in ("create", "click", "persist", "abandon", "leak", "leak_end")
)

# -- links that are not in the database yet ---------------------------------------------------------------------------

LINK: RecordKey[BufferedLink] = RecordKey(
    LINKS, "touch_links:buffer:{code}", BufferedLink, kinds=_OF_CODE, personal=Personal(field="touch_uid"),
    purpose="where a link leads that is not in the database yet", writers=(*_CREATOR, *_LINKS, *_PERSISTER, *_LEAKS),
    readers=(*_CLICKS, *_PERSISTER, *_LEAKS), scripts=(_CREATE, _CLICK, _PERSIST, _ABANDON),
    dead_letter=OnCorrupt.MISS,
)
BUFFER: SortedSetKey[str] = SortedSetKey(
    LINKS, "touch_links:buffer", str, member="code of a link", score="created_at of the link",
    pairs_with=Pair(LINK, "code"), purpose="links that are not in the database yet",
    writers=(*_CREATOR, *_LINKS, *_PERSISTER, *_LEAKS), readers=(*_LEAKS, *_DELAYED),
    scripts=(_CREATE, _PERSIST, _ABANDON, _LEAK),
)
LINK_CLICKS: ListKey[Click] = ListKey(
    LINKS, "touch_links:buffer:clicks:{code}", Click, kinds=_OF_CODE, personal=Personal(field="user_sub"),
    purpose="clicks on a link that is not in the database yet, oldest first",
    writers=(*_CLICKS, *_LINKS, *_PERSISTER, *_LEAKS), readers=(*_PERSISTER, *_LEAKS), scripts=(_CLICK, _ABANDON),
    dead_letter=OnCorrupt.MISS,
)
CLICK_INDEX: RecordKey[ClickIndex] = RecordKey(
    LINKS, "touch_links:buffer:on_clicks_by_uid:{uid}", ClickIndex, kinds=_OF_CLICK,
    purpose="that a click is among those of a link that is not in the database yet, and has a child or not",
    writers=(*_CLICKS, *_LINKS, *_PERSISTER, *_LEAKS), readers=_CLICKS, scripts=(_CLICK, _ABANDON),
)

# -- on the way to the database ---------------------------------------------------------------------------------------

TO_PERSIST: DelayedSet[str] = DelayedSet(
    LINKS, "touch_links:to_persist", str, purgatory="touch_links:persist_purgatory", member="code of a link",
    score="unix time from which the link may be stored", most_dead=1000,
    purpose="links whose message was delivered, to be stored", writers=(*_LINKS, *_PERSISTER, *_LEAKS),
    readers=(*_PERSISTER, *_CLICKS, *_DELAYED),
)
PERSIST_LOCK = SmartLock(
    LINKS, "touch_links:persist_job:lock", purpose="one run at a time stores links", writers=_PERSISTER,
    readers=_PERSISTER,
)
LEAKED: SortedSetKey[str] = SortedSetKey(
    LINKS, "touch_links:leaked", str, member="code of a link", score="created_at of the link",
    purpose="links that nobody stored or gave up in time, being stored by the sweep", writers=_LEAKS,
    readers=(*_LEAKS, *_CLICKS), scripts=(_LEAK, _LEAK_END),
)
LEAK_LOCK = SmartLock(
    LINKS, "touch_links:leaked_link_detection_job:lock", purpose="one run at a time looks for leaked links",
    writers=_LEAKS, readers=_LEAKS,
)

# -- clicks that came while their link was being stored ---------------------------------------------------------------

DELAYED: DelayedSet[str] = DelayedSet(
    LINKS, "touch_links:delayed_clicks", str, purgatory="touch_links:delayed_clicks_purgatory", member="uid of a click",
    score="unix time of the next try to store it", most_dead=1000,
    purpose="clicks that came while their link was being stored", writers=(*_CLICKS, *_DELAYED), readers=_DELAYED,
)
DELAYED_CLICK: RecordKey[DelayedClick] = RecordKey(
    LINKS, "touch_links:delayed_clicks:{uid}", DelayedClick, kinds=_OF_CLICK, personal=Personal(field="user_sub"),
    purpose="a click that came while its link was being stored", writers=(*_CLICKS, *_DELAYED),
    readers=(*_CLICKS, *_DELAYED), scripts=(_CLICK,), dead_letter=OnCorrupt.MISS,
)
CHILD_OF: StringKey[str] = StringKey(
    LINKS, "touch_links:delayed_clicks:childof:{uid}", str, kinds=_OF_CLICK,
    purpose="uid of the delayed click that is the one child of this click", writers=(*_CLICKS, *_DELAYED),
    readers=_CLICKS, scripts=(_CLICK,),
)
DELAYED_LOCK = SmartLock(
    LINKS, "touch_links:delayed_click_persist_job:lock", purpose="one run at a time stores delayed clicks",
    writers=_DELAYED, readers=_DELAYED,
)

# -- too many clicks --------------------------------------------------------------------------------------------------

CODE_WINDOW = IntegerKey(
    LINKS, "touch_links:click_ratelimit:codes:{code}", kinds=_OF_CODE, ttl=Exactly(CODE_WINDOW_SECONDS),
    purpose="clicks on one code just now; only the first is written down", writers=_CLICKS, readers=_CLICKS,
    scripts=(_CLICK,),
)
FLOOD_WINDOW = IntegerKey(
    LINKS, "touch_links:click_ratelimit:unauthenticated", ttl=Exactly(FLOOD_WINDOW_SECONDS),
    purpose="clicks of nobody known just now; very many mean that codes are being guessed", writers=_CLICKS,
    readers=_CLICKS, scripts=(_CLICK,),
)
WARNING_WINDOW = IntegerKey(
    LINKS, "touch_links:click_ratelimit:warning", ttl=Exactly(WARNING_SECONDS),
    purpose="how often codes were found to be guessed; only the first is told", writers=_CLICKS, readers=_CLICKS,
    scripts=(_CLICK,),
)
