"""Touch points that come with the program. Whoever wants other words edits them; they are never overwritten."""

from dataclasses import dataclass
from typing import Any, Final

from keystead.messaging.touches.messages import EmailMessage, Messages, PushMessage, SmsMessage, Substitution
from keystead.messaging.touches.selection import Strategy

DAILY_REMINDER: Final = "daily_reminder"


@dataclass(frozen=True, slots=True)
class BuiltIn:
    """A touch point as it is at first."""

    slug: str
    schema: dict[str, Any]
    strategy: Strategy
    messages: Messages


def _text(example: str) -> dict[str, Any]:
    return {"type": "string", "example": example}


BUILT_IN: Final = (
    BuiltIn(
        DAILY_REMINDER,
        {
            "type": "object",
            "example": {
                "name": "Ada", "url": "https://example.com/l/abc", "unsubscribe_url": "https://example.com/l/d",
                "time_of_day": "morning", "streak": "4 days", "goal": "3 of 5",
            },
            "required": ["name", "url"],
            "properties": {
                "name": _text("Ada"), "url": _text("https://example.com/l/abc"),
                "unsubscribe_url": _text("https://example.com/l/d"), "time_of_day": _text("morning"),
                "streak": _text("4 days"), "goal": _text("3 of 5"),
                "ss_reset": {"type": "boolean", "example": False},
            },
        },
        "ordered_resettable",
        Messages(
            sms=[
                SmsMessage(priority=1, uid="tpsms_daily_reminder_1", body_parameters=["name", "url"],
                           body_format="{name}, here is your reminder for today: {url}"),
                SmsMessage(priority=2, uid="tpsms_daily_reminder_2", body_parameters=["name", "url"],
                           body_format="A minute for yourself, {name}? {url}"),
            ],
            push=[
                PushMessage(priority=1, uid="tppush_daily_reminder_1", title_format="Your daily reminder",
                            body_format="{name}, today's is waiting for you.", body_parameters=["name"],
                            channel_id="daily_reminders"),
                PushMessage(priority=2, uid="tppush_daily_reminder_2", title_format="A minute for yourself?",
                            body_format="{name}, it does not take longer.", body_parameters=["name"],
                            channel_id="daily_reminders"),
            ],
            email=[
                EmailMessage(
                    priority=1, uid="tpem_daily_reminder_1", subject_format="{name}, your reminder for today",
                    subject_parameters=["name"], template="daily_reminder",
                    template_parameters_substituted=[
                        Substitution(key=["name"], format="{name}", parameters=["name"]),
                        Substitution(key=["url"], format="{url}", parameters=["url"]),
                        *(Substitution(key=[name], format=f"{{{name}}}", parameters=[name], optional=True)
                          for name in ("time_of_day", "streak", "goal", "unsubscribe_url")),
                    ],
                ),
            ],
        ),
    ),
)
