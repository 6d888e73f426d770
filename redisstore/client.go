package redisstore

import (
	"context"

	"github.com/headgate-io/headgate/internal/redisconn"
	"github.com/redis/rueidis"
)

// Client is what a Store needs of a client of Redis: to run a script. Implementations are safe for concurrent use, send
// to primaries only, follow MOVED and ASK on a cluster, and never send anything twice by themselves. keys all lie in one
// hash slot. The scripts return a string.
//
// An error that Redis answered must have the text of that answer as its own ("NOSCRIPT No matching script."), or a method
// RedisError() beside it; an error of connecting must wrap the [net.OpError] of the dial. Of every other error the Store
// believes that the script may have run.
type Client interface {
	// EvalSHA runs the script that Redis knows by this SHA-1.
	EvalSHA(ctx context.Context, sha string, keys []string, arg string) (string, error)
	// Eval runs a script and makes it known.
	Eval(ctx context.Context, script string, keys []string, arg string) (string, error)
}

// rueidisClient is the Client of a Store that connects by itself.
type rueidisClient struct{ c rueidis.Client }

func (r rueidisClient) EvalSHA(ctx context.Context, sha string, keys []string, arg string) (string, error) {
	cmd := r.c.B().Evalsha().Sha1(sha).Numkeys(int64(len(keys))).Key(keys...).Arg(arg).Build()
	return answer(r.c.Do(ctx, cmd))
}

func (r rueidisClient) Eval(ctx context.Context, script string, keys []string, arg string) (string, error) {
	cmd := r.c.B().Eval().Script(script).Numkeys(int64(len(keys))).Key(keys...).Arg(arg).Build()
	return answer(r.c.Do(ctx, cmd))
}

func answer(r rueidis.RedisResult) (string, error) {
	text, err := r.ToString()
	if refusal, ok := rueidis.IsRedisErr(err); ok && !refusal.IsNil() {
		return "", replyError{refusal.Error()}
	}
	return text, err
}

// replyError is an error that Redis answered.
type replyError struct{ text string }

func (e replyError) Error() string { return e.text }

// RedisError marks it, as that of other clients does theirs.
func (replyError) RedisError() {}

// Connect returns a client that is connected as that of a Store with this Config would be, for other uses of the same Redis. It
// is a connection of its own, so that what it is used for holds up no take, and is the caller's to close. The context bounds
// connecting only. It never sends a command twice by itself. A Config that brings its own Client is refused.
func Connect(ctx context.Context, cfg Config) (rueidis.Client, error) {
	cfg = cfg.withDefaults()
	if cfg.Client != nil {
		return nil, configErrorf("Config.Client is set; there is nothing to connect")
	}
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	client, err := redisconn.Connect(ctx, cfg.redis())
	if err != nil {
		return nil, connectError(err)
	}
	return client, nil
}
