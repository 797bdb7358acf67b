# frozen_string_literal: true

require "redis"

REDIS = Redis.new(url: ENV["REDIS_URL"])

class Store
  TTL = 2.hours

  def initialize(redis = REDIS, prefix: "store")
    @redis = redis
    @prefix = prefix
  end

  def key(name)
    "#{@prefix}:#{name}"
  end

  def save(name, value)
    @redis.set(key(name), value.to_json, ex: TTL.to_i)
    @redis.hset Keys.session(name), "seen", Time.now.to_i
    @redis.expire(Keys.session(name), 30.minutes)
  end

  def job(id)
    @redis.rpush(format(Keys::JOB, id: id), "x")
    @redis.zadd(Keys::FEED % id, 1, "x")
  end

  def visit(user, day)
    REDIS.pipelined do |p|
      p.incr("visits:#{day}")
      p.sadd(["visitors", day, user.id].join(":"), user.id)
    end
    $redis.publish("visits", user.id)
    Rails.cache.fetch("page/#{user.id}", expires_in: 10.minutes) { "x" }
    Rails.cache.delete(["page", user.id])
  end

  def many(ids)
    @redis.mget(ids.map { |id| "thing:#{id}" })
    Sidekiq.redis { |c| c.lpush("own:queue", 1) }
  end

  def loose(key)
    @redis.get(key)
  end
end
