package redisstock

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/redis/rueidis"
)

// maxSkew is how far the clocks of Redis and of this process may be apart: sales open by that of Redis.
const maxSkew = time.Second

// command runs one command beside the scripts, within the caller's and the stock's time. A nil answer is its error, as the client has it.
func (s *Stock) command(ctx context.Context, do func(ctx context.Context) rueidis.RedisResult) (string, error) {
	r, err := s.take(ctx, do)
	if err != nil {
		return "", err
	}
	text, err := r.ToString()
	if err != nil && !rueidis.IsRedisNil(err) {
		return "", callError(err)
	}
	return text, err
}

// Check looks, before a sale opens, whether every primary of this Redis keeps what it is given: no eviction, an append-only file, a version that
// the scripts run on, and a clock like this process's. The error says all that is wrong and what to set. What a managed Redis does
// not tell is not held against it.
func (s *Stock) Check(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return notBegun(err)
	}
	var wrong []error
	for addr, node := range s.client.Nodes() {
		if err := s.checkNode(ctx, addr, node); err != nil {
			wrong = append(wrong, err)
		}
	}
	return errors.Join(wrong...)
}

func (s *Stock) checkNode(ctx context.Context, addr string, node rueidis.Client) error {
	info, err := s.command(ctx, func(ctx context.Context) rueidis.RedisResult {
		return node.Do(ctx, node.B().Info().Build())
	})
	if err != nil {
		return err
	}
	fields := parseInfo(info)
	if fields["role"] != "master" {
		return nil
	}
	var wrong []error
	add := func(format string, args ...any) {
		wrong = append(wrong, failf(flashsale.CodeUnavailable, nil, "Redis %s: "+format, append([]any{addr}, args...)...))
	}
	if v := fields["redis_version"]; !atLeast(v, 6, 2) {
		add("version %s; the scripts need 6.2 or later", v)
	}
	if p := fields["maxmemory_policy"]; p != "" && p != "noeviction" {
		add("maxmemory-policy is %s, so that it drops stock when memory is short; set it to noeviction", p)
	}
	if fields["aof_enabled"] == "0" {
		add("it keeps no append-only file, so that a restart loses the stock; set appendonly yes, and appendfsync everysec or always")
	} else if s.setting(ctx, node, "appendfsync") == "no" {
		add("appendfsync is no, so that a crash of its machine loses half a minute of the stock; set it to everysec or always")
	}
	if fields["aof_last_write_status"] == "err" {
		add("it cannot write its append-only file; see its log")
	}
	if fields["loading"] == "1" {
		add("it is still reading its data")
	}
	if skew, err := s.skew(ctx, node); err != nil {
		wrong = append(wrong, err)
	} else if skew.Abs() > maxSkew {
		add("its clock is %s from this process's, more than %s; sales open by its clock: synchronize both", skew.Round(time.Millisecond), maxSkew)
	}
	return errors.Join(wrong...)
}

// setting returns a setting, "" where Redis does not tell, as a managed one may not.
func (s *Stock) setting(ctx context.Context, node rueidis.Client, name string) string {
	r, err := s.take(ctx, func(ctx context.Context) rueidis.RedisResult {
		return node.Do(ctx, node.B().ConfigGet().Parameter(name).Build())
	})
	if err != nil {
		return ""
	}
	settings, _ := r.AsStrMap()
	return settings[name]
}

// skew is how far the clock of Redis is ahead of this process's, measured against the middle of the call.
func (s *Stock) skew(ctx context.Context, node rueidis.Client) (time.Duration, error) {
	before := time.Now()
	r, err := s.take(ctx, func(ctx context.Context) rueidis.RedisResult { return node.Do(ctx, node.B().Time().Build()) })
	if err != nil {
		return 0, err
	}
	took := time.Since(before)
	parts, err := r.AsIntSlice()
	if err != nil {
		return 0, callError(err)
	}
	if len(parts) != 2 {
		return 0, badReply("the time")
	}
	return time.Unix(parts[0], parts[1]*1000).Sub(before.Add(took / 2)), nil
}

func parseInfo(text string) map[string]string {
	fields := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}
	return fields
}

// atLeast compares a version; one that cannot be read is not held against Redis.
func atLeast(version string, major, minor int) bool {
	first, rest, _ := strings.Cut(version, ".")
	second, _, _ := strings.Cut(rest, ".")
	a, err1 := strconv.Atoi(first)
	b, err2 := strconv.Atoi(second)
	if err1 != nil || err2 != nil {
		return true
	}
	return a > major || a == major && b >= minor
}
