package redisstore

import (
	"context"
	"strings"
	"unsafe"

	headgate "github.com/headgate-io/headgate"
)

// keyProbe is the letter of the key that probes write to.
const keyProbe = '?'

// maxProbes is the most probes of one Redis that have not come back; a cluster may have many nodes that are probed at the same time.
const maxProbes = 8

func (s *Store) maxProbes() int64 { return maxProbes + int64(len(s.lanes))/4 }

// Probe finds out whether a node, as [Observer].Call names it, can do its work: it runs a take that writes on a key of its own
// there, whatever the breaker says. It returns nil only if that was charged, and by the end of the context or of Config.Timeout, whatever
// the client does. The error wraps [ErrNotServing] if the node serves no keys of this store, any more or as yet: a breaker can forget
// it. A client of your own has the node ""; of a cluster one node of all is probed then, another each time.
func (s *Store) Probe(ctx context.Context, node string) error {
	l, shard := s.laneTo(node)
	if l == nil && s.doubted != nil {
		s.learn(ctx)
		l, shard = s.laneTo(node)
	}
	if l == nil {
		return newError(headgate.CodeUnavailable, ErrNotServing, "node %q", node)
	}
	if err := s.admit(&s.probes, s.maxProbes(), "probes"); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	stop := context.AfterFunc(s.base, cancel)
	done := make(chan error, 1)
	go func() {
		defer s.senders.Done()
		defer s.probes.Add(-1)
		defer cancel()
		defer stop()
		done <- s.probe(ctx, s.clientOf(node), shard)
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-done: // whose end it was
		return err
	default:
		return newError(headgate.CodeIndeterminate, errNoAnswer, "a probe was sent and no answer came")
	}
}

// clientOf returns a client whose calls go to a node, as far as there is one.
func (s *Store) clientOf(node string) Client {
	if s.owned != nil && s.cfg.Cluster {
		if c := s.owned.Nodes()[node]; c != nil {
			return rueidisClient{c}
		}
	}
	return s.client
}

// probe runs the take of a probe.
func (s *Store) probe(ctx context.Context, client Client, shard int) error {
	charge := [1]headgate.Charge{headgate.One("probe", "probe", probeLimit())}
	o, b := newOp(), newBatch()
	o.script = s.scripts.take
	o.load(s.names, charge[:])
	o.refs[0].state = s.names.prefixes[shard] + string(keyProbe)
	b.ops, b.shortcut = append(b.ops, o), s.scripts.one != nil
	keys, arg := b.build(s.bounds)
	script, text := b.script(&s.scripts), unsafe.String(unsafe.SliceData(arg), len(arg))
	reply, err := client.EvalSHA(ctx, script.sha, keys, text)
	if err != nil {
		if f, _ := judge(err); f == fateLoad {
			reply, err = client.Eval(ctx, script.text, keys, text)
		}
	}
	if err != nil {
		if strings.HasPrefix(err.Error(), "MOVED ") {
			s.doubt()
		}
		f, hint := judge(err)
		return callError(f, hint, err)
	}
	var p part
	if len(reply) < headLength {
		return badReply()
	}
	if _, ok := readPart(reply, headLength, &p); !ok {
		return badReply()
	}
	if p.flags&(replyPasses|replyCharged) != replyPasses|replyCharged {
		return newError(headgate.CodeUnavailable, nil, "a probe was not charged")
	}
	return nil
}

// probeLimit is one that no probe exhausts.
func probeLimit() headgate.Limit { return headgate.MustParseLimit("token_bucket 1000000/s") }
