package natsrelay_test

import (
	"strings"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/natsrelay"
	"github.com/nats-io/nats.go/jetstream"
)

func TestCreatesAStreamThatLosesNothing(t *testing.T) {
	t.Parallel()
	b := startBroker(t, nil)
	checked(t, b.url(), natsrelay.Config{Prefix: "shop.events", Stream: "SHOP", MaxAge: time.Hour, MaxBytes: 1 << 20, Duplicates: 10 * time.Minute})
	s, err := b.jetStream().Stream(t.Context(), "SHOP")
	if err != nil {
		t.Fatal(err)
	}
	got := s.CachedInfo().Config
	if got.Subjects[0] != "shop.events.>" || got.Storage != jetstream.FileStorage || got.Discard != jetstream.DiscardNew ||
		got.Retention != jetstream.LimitsPolicy || got.MaxAge != time.Hour || got.MaxBytes != 1<<20 || got.Duplicates != 10*time.Minute {
		t.Fatalf("%+v", got)
	}
	// A second relay takes it as it is.
	checked(t, b.url(), natsrelay.Config{Prefix: "shop.events.spring", Stream: "SHOP"})
}

func TestCheckRefuses(t *testing.T) {
	t.Parallel()
	b := startBroker(t, nil)
	for name, cfg := range map[string]jetstream.StreamConfig{
		"NARROW": {Subjects: []string{"headgate.sale.*.reserved", "other.>"}},
		"MUTE":   {Subjects: []string{"headgate.>"}, NoAck: true},
		"SHORT":  {Subjects: []string{"headgate.*.>"}, Duplicates: time.Minute},
		"MIRROR": {Mirror: &jetstream.StreamSource{Name: "ELSEWHERE"}},
	} {
		cfg.Name = name
		js := b.jetStream()
		if _, err := js.CreateStream(t.Context(), cfg); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		r := openRelay(t, b.url(), natsrelay.Config{Stream: name, Create: true})
		wantCode(t, r.Check(t.Context()), flashsale.CodeInvalidArgument)
		if err := js.DeleteStream(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]natsrelay.Config{
		"a stream with a dot":      {Stream: "a.b"},
		"a long stream":            {Stream: strings.Repeat("x", 65)},
		"a prefix with a wildcard": {Prefix: "headgate.*"},
		"a prefix with a gap":      {Prefix: "headgate..sale"},
		"a prefix with a space":    {Prefix: "headgate sale"},
		"many replicas":            {Replicas: 6},
		"a negative age":           {MaxAge: -1},
		"a window beyond the age":  {MaxAge: time.Minute},
		"much in flight":           {InFlight: 5000},
	} {
		if _, err := natsrelay.Open("nats://127.0.0.1:1", cfg); flashsale.CodeOf(err) != flashsale.CodeInvalidArgument {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := natsrelay.New(nil, natsrelay.Config{})
	wantCode(t, err, flashsale.CodeInvalidArgument)
	_, err = natsrelay.Open("nats://[", natsrelay.Config{})
	wantCode(t, err, flashsale.CodeInvalidArgument)
}

// TestErrorsHaveNoPassword: the text of an error of net/url quotes what it was given.
func TestErrorsHaveNoPassword(t *testing.T) {
	t.Parallel()
	for _, url := range []string{
		"nats://user:s3cret@host:port", "nats://user:s3cret%@host:4222", "nats://user:s3cret@ho st", "nats://us er:s3cret@host:4222",
		"nats://user:s3cret/1@host:4222", "nats://good:4222,nats://user:s3cret@host:port", "://user:s3cret@host",
	} {
		r, err := natsrelay.Open(url, natsrelay.Config{})
		if r != nil {
			_ = r.Close()
		}
		if wantCode(t, err, flashsale.CodeInvalidArgument); strings.Contains(err.Error(), "s3cret") {
			t.Errorf("it quotes the password: %v", err)
		}
	}
}
