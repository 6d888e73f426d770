package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"time"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/middleware/httpverdict"
)

// Policy is a compiled document. It is immutable and safe for concurrent use.
type Policy struct {
	name     string
	version  string
	files    []string
	warnings []Problem
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

	capacity    []Capacity
	degradation Degradation
	overload    Overload
	// l3Allow are the lists whose members pass at L3.
	l3Allow []int
	// ranked: a rule states a priority.
	ranked bool
	// fallbacks: a rule in force has on_deny: fallback.
	fallbacks bool
	// slowest is the longest time that a look-up may take.
	slowest time.Duration
	// split: rules are in more than one store.
	split bool
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
		version:  sha256.New(),
	}
	_, _ = d.version.Write(data) // a hash takes everything
	if root := d.parseYAML(data); root != nil {
		d.decode(root)
	}
	if err := d.err(); err != nil {
		return nil, err
	}
	d.finish()
	if n := d.p.index.everyRequest(d.p.rules); n > headgate.MaxCharges {
		return nil, &Error{Problems: []Problem{{File: name, Message: fmt.Sprintf(
			"the rules that match every request have %d limits; %d are allowed: narrow some with match", n, headgate.MaxCharges)}}}
	}
	return d.p, nil
}

// finish derives what is known only from the whole.
func (d *decoder) finish() {
	p := d.p
	sortProblems(p.warnings)
	p.version = hex.EncodeToString(d.version.Sum(nil))
	p.index = newIndex(p.rules)
	for i := range p.rules {
		p.ranked = p.ranked || p.rules[i].ranked
		p.fallbacks = p.fallbacks || p.rules[i].action.kind == Fallback
		p.split = p.split || p.rules[i].store != p.rules[0].store
	}
}

// Name returns the name that the policy was read under.
func (p *Policy) Name() string { return p.name }

// Rules returns the rules in the order of the document, those that are off as well.
func (p *Policy) Rules() []Rule { return slices.Clone(p.infos) }

// Version returns the SHA-256 of the document and the files that it names, in hexadecimal digits.
func (p *Policy) Version() string { return p.version }

// Files returns the names of the files that the policy is made of beside the document, relative to its folder.
func (p *Policy) Files() []string { return slices.Clone(p.files) }

// Warnings returns what is allowed in the document and does not do what it says.
func (p *Policy) Warnings() []Problem { return slices.Clone(p.warnings) }

// Capacity returns what the parts of the service are said to bear.
func (p *Policy) Capacity() []Capacity { return slices.Clone(p.capacity) }

// Degradation returns when levels are in force.
func (p *Policy) Degradation() Degradation { return p.degradation }

// Overload returns what is done when the process is in danger.
func (p *Policy) Overload() Overload { return p.overload }

// Dimensions returns the dimensions: those that are built in, those of the document, and every ip/N that it uses.
func (p *Policy) Dimensions() []Dimension {
	out := make([]Dimension, len(p.dims))
	for i := range p.dims {
		d := &p.dims[i]
		out[i] = Dimension{Name: d.name, Source: dimensionSources[d.kind], Forgeable: d.forgeable, Bits: d.bits}
		if d.kind == dimHeader && !d.trusted {
			out[i].Header = d.source
		}
		if d.cel != nil {
			out[i].Inputs = d.cel.Inputs()
		}
		for _, need := range d.needs {
			out[i].Needs = append(out[i].Needs, p.dims[need].name)
		}
	}
	return out
}

// Lists returns the lists in the order of the document.
func (p *Policy) Lists() []List {
	out := make([]List, len(p.lists))
	for i := range p.lists {
		l := &p.lists[i]
		out[i] = List{Name: l.name, Position: l.at, values: l.values}
		out[i].AllIPv4, out[i].AllIPv6 = l.ips.wholes()
		if l.dim >= 0 {
			out[i].Dimension = p.dims[l.dim].name
		}
	}
	return out
}

// Allow returns the names of the lists whose members are never limited.
func (p *Policy) Allow() []string { return p.listNames(p.allow) }

// Deny returns the names of the lists whose members are refused before any rule.
func (p *Policy) Deny() []string { return p.listNames(p.deny) }

func (p *Policy) listNames(lists []int) []string {
	names := make([]string, len(lists))
	for i, l := range lists {
		names[i] = p.lists[l].name
	}
	return names
}

// Needs returns what the policy asks of the front that applies it.
func (p *Policy) Needs() []httpverdict.Need {
	var needs []httpverdict.Need
	for _, refs := range []struct {
		field string
		lists []int
	}{{"allow", p.allow}, {"deny", p.deny}, {"degradation", p.l3Allow}} {
		for _, l := range refs.lists {
			if dim := p.lists[l].dim; dim >= 0 && p.dims[dim].body {
				needs = append(needs, httpverdict.Need{Kind: httpverdict.NeedBody, Rule: "list:" + p.lists[l].name, Field: refs.field})
			}
		}
	}
	for i := range p.rules {
		needs = append(needs, p.rules[i].needs()...)
	}
	return needs
}

// needs returns what a rule asks of the front. A shadow rule is held like any other, so it must be released, but nobody
// waits for it, and nothing is done about its denials.
func (r *rule) needs() (needs []httpverdict.Need) {
	add := func(when bool, kind httpverdict.NeedKind, field string) {
		if when {
			needs = append(needs, httpverdict.Need{Kind: kind, Rule: r.name, Field: field})
		}
	}
	acts := !r.shadow
	add(acts && r.hasLimit(isQueue), httpverdict.NeedWait, "limits")
	add(r.hasLimit(isConcurrency), httpverdict.NeedRelease, "limits")
	settled := "cost"
	if r.countWhen != nil {
		settled = "count_when"
	}
	add(r.settled, httpverdict.NeedResult, settled)
	add(r.cost.kind == costRequestBytes, httpverdict.NeedResult, "cost")
	add(r.body, httpverdict.NeedBody, "key")
	add(acts && r.action.kind == Wait, httpverdict.NeedWait, "on_deny")
	add(acts && r.action.kind == Mark, httpverdict.NeedMark, "on_deny")
	add(acts && r.action.kind == Stale, httpverdict.NeedStale, "on_deny")
	add(acts && r.onError == OnErrorStale, httpverdict.NeedStale, "on_error")
	return needs
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
