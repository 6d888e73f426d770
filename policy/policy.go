package policy

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/middleware/httpverdict"
)

// Policy is a compiled document. It is immutable and safe for concurrent use.
type Policy struct {
	name     string
	clients  clients
	dims     []dimension
	lists    []list
	allow    []int
	deny     []int
	specs    []keySpec
	rules    []rule
	infos    []Rule
	index    index
	response httpverdict.ResponseStyle
}

// ParseConfig tells what a document may use.
type ParseConfig struct {
	// Files is the folder that lists may name files of. nil: none, as for a policy from elsewhere.
	Files fs.FS
}

// Load reads the policy in a file. Lists may name files below the policy's own folder, and nothing outside it. A document
// that is not a policy is an [*Error].
func Load(file string) (*Policy, error) {
	data, err := readDocument(file)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(filepath.Dir(file))
	if err != nil {
		return nil, fmt.Errorf("policy %s: the folder cannot be opened: %w", file, cause(err))
	}
	defer root.Close()
	return Parse(file, data, ParseConfig{Files: root.FS()})
}

func readDocument(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("policy %s cannot be opened: %w", file, cause(err))
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || info.IsDir() {
		return nil, fmt.Errorf("policy %s is not a file", file)
	}
	data, err := io.ReadAll(io.LimitReader(f, MaxDocument+1))
	if err != nil {
		return nil, fmt.Errorf("policy %s cannot be read: %w", file, cause(err))
	}
	if len(data) > MaxDocument {
		return nil, fmt.Errorf("policy %s is larger than %d bytes", file, MaxDocument)
	}
	return data, nil
}

// Parse compiles a document. name stands for the file in messages. A document that is not a policy is an [*Error].
func Parse(name string, data []byte, cfg ParseConfig) (*Policy, error) {
	d := &decoder{
		reporter: reporter{file: name},
		p:        &Policy{name: name},
		files:    cfg.Files,
		declared: make(map[string]bool),
		specs:    make(map[string]int),
	}
	if root := d.parseYAML(data); root != nil {
		d.decode(root)
	}
	if err := d.err(); err != nil {
		return nil, err
	}
	d.p.index = newIndex(d.p.rules)
	if n := d.p.index.everyRequest(d.p.rules); n > headgate.MaxCharges {
		return nil, &Error{Problems: []Problem{{File: name, Message: fmt.Sprintf(
			"the rules that match every request have %d limits; %d are allowed: narrow some with match", n, headgate.MaxCharges)}}}
	}
	return d.p, nil
}

// Name returns the name that the policy was read under.
func (p *Policy) Name() string { return p.name }

// Rules returns the rules in the order of the document, those that are off as well.
func (p *Policy) Rules() []Rule { return slices.Clone(p.infos) }

// Needs returns what the policy asks of the front that applies it.
func (p *Policy) Needs() []httpverdict.Need {
	var needs []httpverdict.Need
	for i := range p.rules {
		r := &p.rules[i]
		for _, kind := range []httpverdict.NeedKind{httpverdict.NeedWait, httpverdict.NeedRelease} {
			if slices.ContainsFunc(r.charges, func(c headgate.Charge) bool { return needOf(&c) == kind }) {
				needs = append(needs, httpverdict.Need{Kind: kind, Rule: r.name, Field: "limits"})
			}
		}
	}
	return needs
}

// needOf returns what a charge asks of the front, "" for nothing. A shadow charge is held like any other, so it must be
// released, but nobody waits for it.
func needOf(c *headgate.Charge) httpverdict.NeedKind {
	switch l := c.Limit.(type) {
	case headgate.Concurrency:
		return httpverdict.NeedRelease
	case headgate.LeakyBucket:
		if wait, ok := l.MaxWait(); c.Mode != headgate.Shadow && (!ok || wait > 0) {
			return httpverdict.NeedWait
		}
	}
	return ""
}

// HasDimension tells whether the policy has a dimension of this name: a built-in one, its own, or an ip/N that it uses.
func (p *Policy) HasDimension(name string) bool {
	return slices.ContainsFunc(p.dims, func(d dimension) bool { return d.name == name })
}

// TrustsPeer tells whether the policy believes what this peer writes into X-Forwarded-For, Forwarded and trusted headers.
func (p *Policy) TrustsPeer(peer netip.Addr) bool {
	return p.clients.trusted.contains(peer.Unmap().WithZone(""))
}

// TrustsAnyone tells whether there is a peer that TrustsPeer is true of.
func (p *Policy) TrustsAnyone() bool { return len(p.clients.trusted) > 0 }

// TrustedHeaders returns the names of the headers that are believed from trusted proxies only. A front removes them from
// the requests of anybody else, so that the service behind is not deceived either.
func (p *Policy) TrustedHeaders() []string {
	var names []string
	for _, d := range p.dims {
		if d.kind == dimHeader && d.trusted && !slices.Contains(names, d.source) {
			names = append(names, d.source)
		}
	}
	return names
}

// errNoSlots is what NewEngine answers to a limiter that lacks what the policy needs.
var errNoSlots = errors.New("has concurrency limits, and the store cannot release slots")
