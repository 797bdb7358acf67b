import json
from datetime import timedelta

import redis
from django.core.cache import cache

from shop import names
from shop.names import DAY, Topic, cart_key

pool = redis.ConnectionPool()
r = redis.Redis(connection_pool=pool)

TAKE = """
local stock = redis.call('HGET', KEYS[1], 'stock')
if tonumber(stock) > 0 then
  redis.call('HINCRBY', KEYS[1], 'stock', -1)
  redis.call('ZADD', KEYS[1] .. ':takers', ARGV[1], ARGV[2])
  return 1
end
return 0
"""


def add(user, item, count):
    key = cart_key(user.id)
    with r.pipeline() as pipe:
        pipe.hset(key, item, count)
        pipe.expire(key, 30 * DAY)
        pipe.execute()


def total(user_id):
    return sum(int(value) for value in r.hvals(cart_key(user_id)))


def remember(order):
    r.set(names.order_key(order.id), json.dumps(order.body), ex=timedelta(hours=2))
    r.publish(Topic.PAID, order.id)
    r.publish(Topic.SENT.value, order.id)


def take(sku, user_id, now):
    return r.eval(TAKE, 1, "stock:%s" % sku, now, user_id)


def count_visit(page, day):
    name = ":".join(["visits", page, day.strftime("%Y%m%d")])
    r.incr(name)
    r.pfadd(f"visitors:{day:%Y-%m-%d}", page)


def forget(ids):
    r.delete(*[f"session:{sid}" for sid in ids])
    for name in r.scan_iter(match="visits:*"):
        r.unlink(name)


def describe(kind, page_id):
    if kind == "long":
        key = f"page:long:{page_id}"
        r.setex(key, 600, "x")
    else:
        key = f"page:short:{page_id}"
        r.setex(key, 60, "x")
    cache.set(f"rendered:{page_id}", "x", 90)
# ruff: noqa
