"""Texts that people send us: STOP ends it, START begins it again, HELP says so. Nothing else is read."""

from enum import Enum
from typing import Final
from xml.sax.saxutils import escape

from keystead.errors import Invalid
from keystead.members import PhoneReason, Suppression, normal_phone
from keystead.messaging.sms.suppressed import Suppressed
from keystead.telemetry import counts, logger

STOP_WORDS: Final = frozenset({"stop", "stopall", "unsubscribe", "cancel", "end", "quit"})
START_WORDS: Final = frozenset({"start", "yes", "unstop"})
HELP_WORDS: Final = frozenset({"help", "info"})

counts.describe("sms_inbound", "texts that people sent us, by what they asked for")
_log = logger("messaging.sms")


class Wish(Enum):
    """What a text asks for."""

    STOP = "stop"
    START = "start"
    HELP = "help"
    NOTHING = "nothing"


def wish_of(body: str, opt_out_type: str = "") -> Wish:
    """What a text asks for: as the provider says, or by a word that is the whole text.

    A word among others asks for nothing: "I can't stop smiling" is no wish to be left alone.
    """
    said = opt_out_type.strip().upper()
    if said in ("STOP", "START", "HELP"):
        return Wish[said]
    word = body.strip().lower()
    if word in STOP_WORDS:
        return Wish.STOP
    if word in START_WORDS:
        return Wish.START
    return Wish.HELP if word in HELP_WORDS else Wish.NOTHING


class Inbound:
    """Does what a text asks for. Doing it twice is the same as once.

    ``suppressed``: what the senders of this process remember of numbers, which a STOP changes.
    """

    def __init__(
        self, suppression: Suppression, *, sender_name: str = "Keystead", suppressed: Suppressed | None = None
    ) -> None:
        self._suppression, self._name, self._suppressed = suppression, sender_name, suppressed

    async def take(self, number: str, body: str, opt_out_type: str = "") -> str:
        """Do it, and give the words to answer with; none if there is nothing to say.

        Where the provider says itself what was asked for, it has answered already.
        """
        wish = wish_of(body, opt_out_type)
        counts.add("sms_inbound", wish=wish.value)
        answer = await self._done(wish, number)
        return "" if opt_out_type.strip() else answer

    async def _done(self, wish: Wish, number: str) -> str:
        try:
            checked = normal_phone(number)
        except Invalid:  # a short code, or a sender with letters: nobody has it
            _log.info("a text came from what is no phone number", wish=wish.value)
            return ""
        if wish is Wish.STOP:
            await self._suppression.suppress_phone(checked, PhoneReason.STOP)
            if self._suppressed is not None:
                self._suppressed.forget(checked)
            return f"{self._name}: you will get no more texts from us. Reply START to get them again."
        if wish is Wish.START:
            started = await self._suppression.lift_phone(checked)
            return f"{self._name}: you get our texts again. Reply STOP to end them." if started else ""
        if wish is Wish.HELP:
            return f"{self._name}: reply STOP to get no more texts, START to get them again."
        return ""


def reply_xml(words: str) -> str:
    """The answer as the provider reads it."""
    return f'<?xml version="1.0" encoding="UTF-8"?><Response><Message>{escape(words)}</Message></Response>'
