package policy

import (
	"hash"
	htmltemplate "html/template"
	"io"
	"io/fs"
	"net/url"
	"strings"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/middleware/httpverdict"
	"github.com/headgate-io/headgate/policy/internal/expr"
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
	// expressions compiles a text once for all that have the same.
	expressions expr.Compiler
	// version takes in everything that the policy is made of.
	version hash.Hash
}

func (d *decoder) decode(root *node) {
	s := scope{d, ""}
	if root.kind != kindMapping {
		s.fail(root.pos, "the document must be a mapping that begins with version: 1, not %s", root.describe())
		return
	}
	fields := s.fields(root, documentMapping)
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
	d.decodeCapacity(fields["capacity"])
	d.decodeResponse(fields["response"])
	d.decodeDegradation(fields["degradation"])
	d.decodeOverload(fields["overload"])
}

func (d *decoder) decodeClients(n *node) {
	d.p.clients.ipv6Prefix = 64
	if n == nil {
		return
	}
	s := scope{d, "clients"}
	fields := s.fields(n, clientsMapping)
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

func (d *decoder) decodeResponse(n *node) {
	d.p.response = httpverdict.ResponseStyle{Style: httpverdict.StyleProblem, IETF: true}
	if n == nil {
		return
	}
	s := scope{d, "response"}
	fields := s.fields(n, responseMapping)
	d.p.response.Style = s.oneOf(fields["style"], "style", httpverdict.StyleProblem, httpverdict.StyleEnvelope, httpverdict.StyleTemplate)
	s.decodeTemplate(n, fields)
	d.p.response.Origins = s.decodeOrigins(fields["cors_origins"])
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

func (s scope) decodeTemplate(n *node, fields map[string]*node) {
	file := fields["template"]
	switch wanted := s.p.response.Style == httpverdict.StyleTemplate; {
	case wanted && file == nil:
		s.fail(n.pos, "style template needs the page; write template: FILE")
		return
	case !wanted && file != nil:
		s.fail(file.pos, "template goes with style template only")
		return
	case !wanted:
		return
	}
	data, ok := s.readFile(file, "template")
	if !ok {
		return
	}
	t, err := htmltemplate.New("template").Parse(string(data))
	if err == nil {
		err = t.Execute(io.Discard, httpverdict.Page{Status: 429, Title: "t", Message: "m", Lang: "en", Code: "limited", ID: "x", RetryAfter: 1})
	}
	if err != nil {
		s.fail(file.pos, "template %q cannot be used: %v", clip(file.text, 60), err)
		return
	}
	s.p.response.Template = anyPage{t}
}

// anyPage is a page as httpverdict takes it.
type anyPage struct{ *htmltemplate.Template }

func (s scope) decodeOrigins(n *node) []string {
	var origins []string
	for _, item := range s.some(n, "cors_origins", 100, "remove it for none") {
		text, ok := s.text(item, "cors_origins")
		if !ok {
			continue
		}
		u, err := url.Parse(text)
		if err != nil || u.Scheme == "" || u.Host == "" || text != u.Scheme+"://"+strings.ToLower(u.Host) {
			s.fail(item.pos, "origin %q is not one such as https://shop.example.com, in small letters and without a path", clip(text, 60))
			continue
		}
		origins = append(origins, text)
	}
	return origins
}

func (d *decoder) decodeCapacity(n *node) {
	if n == nil {
		return
	}
	s := scope{d, "capacity"}
	if n.kind != kindMapping {
		s.fail(n.pos, "must be a mapping from paths to rates such as /pay: 2000/s, not %s", n.describe())
		return
	}
	if len(n.fields) > 256 {
		s.fail(n.pos, "has %d entries; 256 are allowed", len(n.fields))
		return
	}
	seen := make(map[string]bool)
	for _, f := range n.fields {
		if _, problem := parsePattern(f.name); problem != "" {
			s.fail(f.pos, "path %q %s", clip(f.name, 60), problem)
		}
		if seen[f.name] {
			s.fail(f.pos, "path %q is given twice; keep one", clip(f.name, 60))
		}
		seen[f.name] = true
		text, ok := s.text(f.value, f.name)
		if !ok {
			continue
		}
		rate, err := headgate.ParseLimit("token_bucket " + text)
		if err != nil || strings.ContainsRune(text, ' ') {
			s.fail(f.value.pos, "%q is not a rate such as 2000/s", clip(text, 60))
			continue
		}
		d.p.capacity = append(d.p.capacity, Capacity{Path: f.name, Rate: rate, Position: Position{f.pos.line, f.pos.column}})
	}
}
