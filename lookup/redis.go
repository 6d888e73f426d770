package lookup

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

// RedisClient is what a Redis needs of a client; a [rueidis.Client] is one.
type RedisClient interface {
	B() rueidis.Builder
	Do(ctx context.Context, cmd rueidis.Completed) rueidis.RedisResult
}

// Bounds of the look-ups in Redis.
const (
	// maxCalls is how many calls are under way at most, those that their callers have left among them.
	maxCalls = 256
	// abandonAfter ends a call that its caller has left, if the client has not given it up by then.
	abandonAfter = 10 * time.Second
)

// ErrBusy says that so many look-ups are under way already that nothing was asked.
var ErrBusy = errors.New("too many look-ups are under way")

// Redis reads fields of hashes. It is safe for concurrent use. The client stays its user's to close.
type Redis struct {
	client RedisClient
	places chan struct{}
}

// NewRedis returns look-ups through a client. Give it a client of its own: one that decides limits as well has calls with a
// deadline wait while a look-up makes a connection.
func NewRedis(client RedisClient) *Redis {
	return &Redis{client: client, places: make(chan struct{}, maxCalls)}
}

// HashField returns a field of a hash. found is false if there is no such key, or no such field in it. It returns when ctx
// ends, whatever the client does. The error wraps that of the context or of the client, or is [ErrBusy] at once when 256
// calls are under way.
func (r *Redis) HashField(ctx context.Context, hash, field string) (value string, found bool, err error) {
	if ctx.Err() != nil {
		return "", false, redisError(ctx.Err())
	}
	select {
	case r.places <- struct{}{}:
	default:
		return "", false, redisError(ErrBusy)
	}
	answers := make(chan rueidis.RedisResult, 1)
	go func() {
		defer func() { <-r.places }()
		answers <- r.ask(ctx, hash, field)
	}()
	select {
	case answer := <-answers:
		value, err = answer.ToString()
	case <-ctx.Done():
		return "", false, redisError(ctx.Err())
	}
	switch {
	case err == nil:
		return value, true, nil
	case rueidis.IsRedisNil(err):
		return "", false, nil
	}
	return "", false, redisError(err)
}

// ask makes a call without the caller's deadline: the client would keep to it by cutting the connection under the calls of
// others.
func (r *Redis) ask(ctx context.Context, hash, field string) rueidis.RedisResult {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abandonAfter)
	defer cancel()
	return r.client.Do(ctx, r.client.B().Hget().Key(hash).Field(field).Build())
}

// redisError says what went wrong, and what to do where that is known.
func redisError(err error) error {
	hint := ""
	if refusal, ok := rueidis.IsRedisErr(err); ok {
		switch word, _, _ := strings.Cut(refusal.Error(), " "); word {
		case "WRONGTYPE":
			hint = "; the key has a value that is no hash: look at how the policy names it"
		case "NOPERM":
			hint = "; the user of this connection needs the right to HGET on these keys"
		case "NOAUTH", "WRONGPASS":
			hint = "; check the user and the password"
		case "MOVED", "ASK":
			hint = "; this is a node of a cluster: the client must be one for a cluster"
		}
	}
	return fmt.Errorf("lookup: HGET in Redis: %w%s", err, hint)
}
