package app

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/headgate-io/headgate/lookup"
	"github.com/headgate-io/headgate/policy"
)

// lookups finds what policies look up: by HTTP, and in the Redis of the store if it has one.
type lookups struct {
	log   *slog.Logger
	http  *lookup.HTTP
	redis *lateRedis // nil without
	// gone tells that no node of the store's Redis is asked at the moment.
	gone func() bool
}

func newLookups(store *Store, log *slog.Logger) *lookups {
	l := &lookups{log: log, http: lookup.NewHTTP(lookup.HTTPConfig{}), gone: store.gone}
	if store.connect != nil {
		l.redis = newLateRedis(store.connect)
	}
	return l
}

// of returns the look-ups for a policy. Where there is no Redis, none are made in it, and the engine refuses a policy that
// needs one.
func (l *lookups) of(p *policy.Policy) policy.Lookups {
	ways := policy.Lookups{HTTPGet: logged(l.http.Get, l.log, "http")}
	if l.redis == nil {
		return ways
	}
	if slices.ContainsFunc(p.Dimensions(), func(d policy.Dimension) bool { return d.Source == "redis" }) {
		l.redis.current() // connects before the first request
	}
	ways.HashField = logged(l.hashField, l.log, "redis")
	return ways
}

var errGone = errors.New("look-ups in Redis: it does not answer at the moment, and is not asked")

// hashField reads a field of a hash. While the breakers keep requests from waiting for Redis, look-ups do not wait either.
func (l *lookups) hashField(ctx context.Context, hash, field string) (value string, found bool, err error) {
	if l.gone() {
		return "", false, errGone
	}
	return l.redis.HashField(ctx, hash, field)
}

// close gives back what the look-ups hold; those under way fail.
func (l *lookups) close() {
	l.http.Close()
	if l.redis != nil {
		l.redis.close()
	}
}

// way is a look-up of either kind.
type way = func(ctx context.Context, where, field string) (value string, found bool, err error)

// logged logs that look-ups fail, at most once in lossEvery however many do.
func logged(find way, log *slog.Logger, source string) way {
	var failures, said atomic.Int64 // said in Unix nanoseconds
	return func(ctx context.Context, where, field string) (string, bool, error) {
		value, found, err := find(ctx, where, field)
		if err == nil {
			return value, found, nil
		}
		failures.Add(1)
		now, last := time.Now().UnixNano(), said.Load()
		if now-last >= int64(lossEvery) && said.CompareAndSwap(last, now) {
			log.LogAttrs(ctx, slog.LevelWarn, "look-ups fail: what was known before stands for a time, then the dimension's default",
				slog.String("source", source), slog.String("error", err.Error()), slog.Int64("failures", failures.Swap(0)))
		}
		return "", false, err
	}
}
