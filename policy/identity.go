package policy

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/headgate-io/headgate/middleware/httpverdict"
)

// Value returns the value that a dimension has of a request, as [Engine.Decide] finds it; ok is false if it is missing, if there
// is no such dimension, and of route, which only a rule gives a value. Nothing is charged. What Decide has verified or looked up
// for the same request a moment ago is remembered, and costs little here. The error of a body that cannot be read, or of a
// look-up, is a missing value, as for a rule.
func (e *Engine) Value(ctx context.Context, r *httpverdict.Request, name string) (value string, ok bool) {
	i := e.policy.dimension(name)
	if i < 0 {
		return "", false
	}
	s := e.pool.Get().(*scratch)
	defer func() {
		s.end()
		e.pool.Put(s)
	}()
	s.begin(ctx, e, r)
	return s.value(i)
}

// dimension returns the index of a dimension, -1 if there is none.
func (p *Policy) dimension(name string) int {
	return slices.IndexFunc(p.dims, func(d dimension) bool { return d.name == name })
}

// CheckIdentity says why a dimension cannot tell who somebody is, as somebody's own orders need it: it is not defined, or a client
// can forge it, or has a say in it by what it asks for, or it vouches for nobody: at the root of it must be a token, a signed
// cookie or a trusted header. An expression does not do, nor does a look-up with a default: they would make one of all whom nobody
// knows.
func (p *Policy) CheckIdentity(name string) error {
	i, err := p.known(name)
	if err != nil {
		return err
	}
	vouched := false
	for _, k := range p.closure(i) {
		d := &p.dims[k]
		switch {
		case d.body:
			return p.unfit(name, d, "it is read from the body, which a client writes itself")
		case d.forgeable && len(d.needs) == 0:
			return p.unfit(name, d, "a client can forge it")
		case d.kind == dimCEL:
			return p.unfit(name, d, "an expression has a value, the same one, for all for whom nobody vouches")
		case d.asked():
			return p.unfit(name, d, "a client chooses it by what it asks for")
		case d.lookUp != nil && d.lookUp.otherwise != "":
			return p.unfit(name, d, "its default makes one of all whom the look-up does not know")
		}
		vouched = vouched || d.kind == dimJWT || d.kind == dimCookie || d.kind == dimHeader
	}
	switch {
	case p.dims[i].forgeable:
		return p.unfit(name, &p.dims[i], "a client can forge it")
	case !vouched:
		return p.unfit(name, &p.dims[i], "it vouches for nobody; use a token (jwt), a signed cookie, or a header of a trusted proxy")
	}
	return nil
}

// CheckDevice says why a dimension cannot tell from which device somebody comes: it is not defined, or has a value only within a
// rule, or must be read from the body. A client may have a say in it.
func (p *Policy) CheckDevice(name string) error {
	i, err := p.known(name)
	if err != nil {
		return err
	}
	for _, k := range p.closure(i) {
		switch d := &p.dims[k]; {
		case d.kind == dimRoute:
			return p.unfit(name, d, "it has a value only within a rule")
		case d.body:
			return p.unfit(name, d, "it is read from the body, which not every request has")
		}
	}
	return nil
}

func (p *Policy) known(name string) (int, error) {
	i := p.dimension(name)
	if i < 0 {
		names := make([]string, len(p.dims))
		for k := range p.dims {
			names[k] = p.dims[k].name
		}
		return i, fmt.Errorf("policy %s: dimension %q is not defined; there are %s", p.name, name, strings.Join(names, ", "))
	}
	return i, nil
}

func (p *Policy) unfit(name string, d *dimension, why string) error {
	if d.name != name {
		return fmt.Errorf("policy %s: dimension %q does not do, by way of %q: %s", p.name, name, d.name, why)
	}
	return fmt.Errorf("policy %s: dimension %q does not do: %s", p.name, name, why)
}

// closure returns a dimension and all that it is made of, what it is made of first.
func (p *Policy) closure(i int) []int {
	var all []int
	var visit func(i int)
	visit = func(i int) {
		if slices.Contains(all, i) {
			return
		}
		for _, need := range p.dims[i].needs {
			visit(need)
		}
		all = append(all, i)
	}
	visit(i)
	return all
}

// asked tells whether a dimension says what a client asks for, and not who it is.
func (d *dimension) asked() bool {
	switch d.kind {
	case dimRoute, dimMethod, dimPath, dimHost:
		return true
	}
	return false
}
