package natsrelay

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go/jetstream"
)

// Check looks at the stream, after making it if there is none and Config.Create says so. The error's code is CodeInvalidArgument if the
// stream cannot take what the relay sends: it has other subjects, gives no acknowledgements, cannot be published to, or its
// window for duplicates is shorter than Config.Duplicates. A stream that is missing, or a server that does not answer, is
// CodeUnavailable. Publish needs no Check before it.
func (r *Relay) Check(ctx context.Context) error {
	if err := r.ready(); err != nil {
		return err
	}
	cfg, err := r.stream(ctx)
	if err != nil {
		return err
	}
	var wrong string
	switch all := r.cfg.Prefix + ".>"; {
	case !covers(cfg.Subjects, all):
		wrong = fmt.Sprintf("it takes %q and not all of %s", cfg.Subjects, all)
	case cfg.NoAck:
		wrong = "it gives no acknowledgements"
	case cfg.Mirror != nil, cfg.Sealed:
		wrong = "nothing can be published to it"
	case cfg.Duplicates < r.cfg.Duplicates:
		wrong = fmt.Sprintf("its window for duplicates is %s; %s are asked for", cfg.Duplicates, r.cfg.Duplicates)
	default:
		return nil
	}
	return invalid("the stream %s cannot be used: %s", r.cfg.Stream, wrong)
}

// stream returns the configuration of the stream, which it makes if that is asked for, within Config.Timeout.
func (r *Relay) stream(ctx context.Context) (*jetstream.StreamConfig, error) {
	// The client bounds a question by itself only where its context has no deadline, which may be a late one.
	asked, cancel := context.WithTimeout(ctx, r.cfg.Timeout)
	defer cancel()
	s, err := r.js.Stream(asked, r.cfg.Stream)
	if errors.Is(err, jetstream.ErrStreamNotFound) && r.cfg.Create {
		s, err = r.js.CreateStream(asked, r.wanted())
	}
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound):
		return nil, unavailable("there is no stream "+r.cfg.Stream+"; make it, or set Config.Create", err)
	case err != nil:
		return nil, unavailable("looking for the stream "+r.cfg.Stream, err)
	}
	cfg := s.CachedInfo().Config
	return &cfg, nil
}

func (r *Relay) wanted() jetstream.StreamConfig {
	c := jetstream.StreamConfig{
		Name: r.cfg.Stream, Description: "events of flash sales", Subjects: []string{r.cfg.Prefix + ".>"}, Storage: jetstream.FileStorage,
		Discard: jetstream.DiscardNew, Replicas: r.cfg.Replicas, MaxAge: r.cfg.MaxAge, MaxBytes: -1, Duplicates: r.cfg.Duplicates,
	}
	if r.cfg.MaxBytes > 0 {
		c.MaxBytes = r.cfg.MaxBytes
	}
	return c
}

// covers reports whether one of the patterns takes every subject that a subject, or pattern, stands for.
func covers(patterns []string, subject string) bool {
	for _, p := range patterns {
		if cover(strings.Split(p, "."), strings.Split(subject, ".")) {
			return true
		}
	}
	return false
}

func cover(pattern, subject []string) bool {
	for i, word := range pattern {
		switch {
		case word == ">":
			return len(subject) > i
		case i >= len(subject), subject[i] == ">":
			return false
		case word != "*" && word != subject[i]:
			return false
		}
	}
	return len(pattern) == len(subject)
}
