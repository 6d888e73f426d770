package testservers

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// AwaitReplicas waits until n replicas have confirmed everything that was written to this primary before the call. (The
// command WAIT does not serve from here: it looks at the writes of its own connection only.)
func (s *RedisServer) AwaitReplicas(n int, within time.Duration) error {
	fields, err := s.Info("replication")
	if err != nil {
		return fmt.Errorf("testservers: redis at %s: %w", s.Addr(), err)
	}
	target, err := strconv.ParseInt(fields["master_repl_offset"], 10, 64)
	if err != nil {
		return fmt.Errorf("testservers: redis at %s: master_repl_offset: %w", s.Addr(), err)
	}
	err = pollFor(within, func() error {
		fields, err := s.Info("replication")
		if err != nil {
			return err
		}
		if have := confirmed(fields, target); have < n {
			return fmt.Errorf("%d of %d replicas have confirmed offset %d", have, n, target)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("testservers: redis at %s: %w", s.Addr(), err)
	}
	return nil
}

// confirmed counts the replicas at or past an offset, from lines like slave0:ip=127.0.0.1,port=1,state=online,offset=5,lag=0.
func confirmed(fields map[string]string, target int64) (count int) {
	for name, value := range fields {
		_, after, ok := strings.Cut(value, ",offset=")
		if !ok || !strings.HasPrefix(name, "slave") {
			continue
		}
		text, _, _ := strings.Cut(after, ",")
		if offset, err := strconv.ParseInt(text, 10, 64); err == nil && offset >= target {
			count++
		}
	}
	return count
}
