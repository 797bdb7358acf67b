package store

import (
	"fmt"
	"strings"
	"time"
)

const (
	prefix     = "shop:"
	sessionFmt = prefix + "session:%s"
	rateFmt    = "rate:%s:%d"
	sessionTTL = 24 * time.Hour
)

func userKey(id int64) string { return fmt.Sprintf("user:%d", id) }

func join(parts ...string) string { return strings.Join(parts, ":") }
