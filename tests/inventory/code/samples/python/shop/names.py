"""Names of keys, with no word about where they are kept."""

from enum import Enum

ROOT = "shop"
CART_PREFIX = ROOT + ":cart"
DAY = 24 * 60 * 60
ORDER_TEMPLATE = "{root}:order:{order_id}"


class Topic(str, Enum):
    PAID = "orders.paid"
    SENT = "orders.sent"


def cart_key(user_id: int) -> str:
    return f"{CART_PREFIX}:{user_id}"


def order_key(order_id):
    return ORDER_TEMPLATE.format(root=ROOT, order_id=order_id)
# ruff: noqa
