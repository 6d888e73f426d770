package policy

import (
	"io/fs"

	"github.com/headgate-io/headgate/middleware/httpverdict"
)

// decoder compiles a document in one pass per part, in the order in which parts refer to each other.
type decoder struct {
	reporter
	p *Policy
	// files is the policy's own folder; nil if it may name no files.
	files fs.FS
	// declared has the names of the document's dimensions, the faulty ones too.
	declared map[string]bool
	// specs finds a key that another rule has already.
	specs map[string]int
}

var documentSchema = schema{
	known: []string{"version", "clients", "dimensions", "lists", "allow", "deny", "rules", "response"},
	later: []string{"capacity", "degradation", "overload"},
}

func (d *decoder) decode(root *node) {
	s := scope{d, ""}
	if root.kind != kindMapping {
		s.fail(root.pos, "the document must be a mapping that begins with version: 1, not %s", root.describe())
		return
	}
	fields := s.fields(root, documentSchema)
	if n := fields["version"]; n == nil {
		s.fail(root.pos, "version is missing; write version: 1")
	} else if text, ok := s.text(n, "version"); ok && text != "1" {
		s.fail(n.pos, "version %q is unknown; write version: 1", clip(text, 60))
	}
	d.decodeClients(fields["clients"])
	d.decodeDimensions(fields["dimensions"])
	d.decodeLists(fields["lists"])
	d.p.allow = s.listRefs(fields["allow"], "allow", true)
	d.p.deny = s.listRefs(fields["deny"], "deny", false)
	d.decodeRules(fields["rules"])
	d.decodeResponse(fields["response"])
}

var clientsSchema = schema{known: []string{"trusted_proxies", "ipv6_prefix"}}

func (d *decoder) decodeClients(n *node) {
	d.p.clients.ipv6Prefix = 64
	if n == nil {
		return
	}
	s := scope{d, "clients"}
	fields := s.fields(n, clientsSchema)
	d.p.clients.ipv6Prefix = int(s.integer(fields["ipv6_prefix"], "ipv6_prefix", 64, 1, 128))
	if proxies := fields["trusted_proxies"]; proxies != nil {
		d.p.clients.trusted = s.decodeCIDRs(proxies, "trusted_proxies")
		for _, item := range proxies.items {
			if p, err := parsePrefix(item.text); err == nil && p.Bits() == 0 {
				s.fail(item.pos, "trusted_proxies %q would let every client write its own address; name the proxies", item.text)
			}
		}
	}
}

var responseSchema = schema{known: []string{"style", "headers", "retry_jitter"}}

func (d *decoder) decodeResponse(n *node) {
	d.p.response = httpverdict.ResponseStyle{Style: httpverdict.StyleProblem, IETF: true}
	if n == nil {
		return
	}
	s := scope{d, "response"}
	fields := s.fields(n, responseSchema)
	if style := fields["style"]; style != nil {
		if style.text == "template" {
			s.fail(style.pos, "style template is not supported by this version; write problem or envelope")
		} else {
			d.p.response.Style = s.oneOf(style, "style", httpverdict.StyleProblem, httpverdict.StyleEnvelope)
		}
	}
	if headers := fields["headers"]; headers != nil {
		d.p.response.IETF = false
		items := s.list(headers, "headers", 2)
		for _, item := range items {
			switch s.oneOf(item, "headers", "ietf", "x-ratelimit") {
			case "ietf":
				d.p.response.IETF = true
			case "x-ratelimit":
				d.p.response.XRateLimit = true
			}
		}
		if headers.kind == kindSequence && len(headers.items) == 0 {
			s.fail(headers.pos, "headers is empty; write [ietf], [x-ratelimit] or both")
		}
	}
	d.p.response.RetryJitter = s.percent(fields["retry_jitter"], "retry_jitter")
}
