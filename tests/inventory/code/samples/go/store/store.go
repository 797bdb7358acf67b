package store

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"
	goredis "github.com/redis/go-redis/v9"
)

type Store struct {
	rdb       *goredis.Client
	namespace string
}

func New(rdb *goredis.Client) *Store {
	return &Store{rdb: rdb, namespace: "inventory"}
}

var takeScript = goredis.NewScript(`
local left = redis.call("DECR", KEYS[1])
redis.call("PEXPIRE", KEYS[1], 1500)
redis.call("LPUSH", "taken:" .. ARGV[1], left)
return left
`)

func (s *Store) key(name string) string {
	return s.namespace + ":" + name
}

func (s *Store) Save(ctx context.Context, token string, user User) error {
	data, err := json.Marshal(user)
	if err != nil {
		return fmt.Errorf("save: %w", err)
	}
	if err := s.rdb.Set(ctx, fmt.Sprintf(sessionFmt, token), data, sessionTTL).Err(); err != nil {
		return err
	}
	pipe := s.rdb.TxPipeline()
	pipe.HSet(ctx, userKey(user.ID), "name", user.Name)
	pipe.Expire(ctx, userKey(user.ID), 7*24*time.Hour)
	_, err = pipe.Exec(ctx)
	return err
}

func (s *Store) Count(ctx context.Context, item string) (int64, error) {
	return s.rdb.Incr(ctx, s.key("count:"+item)).Result()
}

func (s *Store) Online(ctx context.Context, room string) ([]string, error) {
	key := strings.Join([]string{"room", room, "online"}, ":")
	s.rdb.ZAdd(ctx, key, goredis.Z{Score: 1, Member: "x"})
	return s.rdb.ZRange(ctx, key, 0, -1).Result()
}

func (s *Store) Take(ctx context.Context, sku string) error {
	return takeScript.Run(ctx, s.rdb, []string{"stock:" + sku}, sku).Err()
}

func (s *Store) Raw(ctx context.Context, key string) string {
	return s.rdb.Get(ctx, key).Val()
}

func Limit(conn redis.Conn, ip string, window int64) error {
	key := fmt.Sprintf(rateFmt, ip, window)
	_, err := conn.Do("SET", key, 1, "EX", 60, "NX")
	conn.Send("SADD", "limited", ip)
	return err
}

func (s *Store) Listen(ctx context.Context) {
	s.rdb.Subscribe(ctx, "prices")
	s.rdb.PSubscribe(ctx, "orders.*")
	s.rdb.Publish(ctx, "orders."+"paid", "1")
	s.rdb.XReadGroup(ctx, &goredis.XReadGroupArgs{Group: "g", Streams: []string{"journal", ">"}})
}
