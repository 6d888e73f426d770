package app

import (
	"context"
	"net"
	"strings"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/kafkarelay"
	"github.com/headgate-io/headgate/flashsale/natsrelay"
)

// RelayForms lists how a broker can be written, for help and errors.
const RelayForms = "nats://HOST:PORT,… (tls:// for TLS) or kafka://HOST:PORT,…/TOPIC"

// checkRelay says what is wrong with the text of a broker.
func checkRelay(text string) error {
	if text == "" {
		return nil
	}
	scheme, rest, _ := strings.Cut(text, "://")
	hosts, topic, _ := strings.Cut(rest, "/")
	switch scheme {
	case "nats", "tls":
		if topic != "" {
			return usagef("sale: --relay has a path, which NATS has not; write %s", RelayForms)
		}
	case "kafka":
		if strings.Contains(hosts, "@") || topic == "" {
			return usagef("sale: --relay is not kafka://HOST:PORT,…/TOPIC")
		}
	default:
		return usagef("sale: --relay does not begin as any kind of broker does; write %s", RelayForms)
	}
	for host := range strings.SplitSeq(hosts[strings.LastIndexByte(hosts, '@')+1:], ",") {
		if name, port, err := net.SplitHostPort(host); err != nil || name == "" || port == "" {
			return usagef("sale: --relay names a broker without host and port; write %s", RelayForms)
		}
	}
	return nil
}

// shownRelay is the broker without passwords.
func shownRelay(text string) string {
	scheme, rest, _ := strings.Cut(text, "://")
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		rest = "…" + rest[at:]
	}
	return scheme + "://" + rest
}

// relayWithin is how long the start waits for a broker. The sale does not need it: events wait in the outbox.
const relayWithin = 2 * time.Second

// openRelay makes the relay. A broker that is away is no error; a stream that cannot take events is.
func (s *sale) openRelay(ctx context.Context) (flashsale.Relay, error) {
	scheme, rest, _ := strings.Cut(s.cfg.Relay, "://")
	var relay interface {
		flashsale.Relay
		Check(ctx context.Context) error
	}
	var err error
	if scheme == "kafka" {
		hosts, topic, _ := strings.Cut(rest, "/")
		relay, err = kafkarelay.New(kafkarelay.Config{Brokers: strings.Split(hosts, ","), Topic: topic})
	} else {
		relay, err = natsrelay.Open(natsServers(scheme, rest), natsrelay.Config{Create: true})
	}
	if err != nil {
		return nil, relayError(s.cfg.Relay, err)
	}
	ctx, cancel := context.WithTimeout(ctx, relayWithin)
	defer cancel()
	switch err := relay.Check(ctx); {
	case err == nil:
	case flashsale.CodeOf(err) == flashsale.CodeInvalidArgument:
		_ = relay.Close() // the first error says more
		return nil, relayError(s.cfg.Relay, err)
	default:
		s.log.Warn("the broker takes no events yet: they wait in the database", "relay", shownRelay(s.cfg.Relay), "error", err)
	}
	return relay, nil
}

// natsServers writes a list of servers as nats.go wants it: user and password, which stand before the first, are for all.
func natsServers(scheme, rest string) string {
	login := ""
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		login, rest = rest[:at+1], rest[at+1:]
	}
	return scheme + "://" + login + strings.ReplaceAll(rest, ",", ","+scheme+"://"+login)
}

func relayError(text string, err error) error {
	return &flashsale.Error{Code: flashsale.CodeOf(err), Message: "sale: the broker " + shownRelay(text) + ": " + err.Error()}
}
