package testlang

import (
	"fmt"
	"strings"
	"time"
)

// checker compares the runs of one line with what it expects.
type checker struct {
	step    *Step
	runs    int64
	allowed int64
	failure *Failure
}

func (c *checker) run(at time.Duration, a answer) {
	c.runs++
	if a.is("allow") {
		c.allowed++
	}
	if c.failure != nil || c.matches(a) {
		return
	}
	c.failure = &Failure{Line: c.step.Line, Text: c.step.Text, Want: c.step.Want.String(), Got: c.describe(a)}
	if c.step.Runs() > 1 {
		c.failure.Run = fmt.Sprintf("run %d of %d, at %s", c.runs, c.step.Runs(), at)
	}
}

// finish returns the failure of the line, nil if there is none.
func (c *checker) finish() *Failure {
	w := &c.step.Want
	if c.failure == nil && w.Word == "allowed" && c.allowed != w.Allowed {
		c.failure = &Failure{Line: c.step.Line, Text: c.step.Text, Want: w.String(), Got: fmt.Sprintf("allowed=%d", c.allowed)}
	}
	return c.failure
}

func (c *checker) matches(a answer) bool {
	w := &c.step.Want
	switch {
	case w.Word == "error":
		return a.code() == w.Code
	case a.err() != nil:
		return false
	case w.Word == "allowed":
		return true
	case w.Word != "" && !a.is(w.Word):
		return false
	}
	for _, f := range w.Fields {
		if got, ok := a.field(f.Name); !ok || got != f.Value {
			return false
		}
	}
	return true
}

// describe shows the expected fields if the verdict is as expected, else all that is known.
func (c *checker) describe(a answer) string {
	w := &c.step.Want
	if a.err() != nil || w.Word == "error" || w.Word == "allowed" || w.Word != "" && !a.is(w.Word) {
		return a.String()
	}
	var parts []string
	if w.Word != "" {
		parts = append(parts, w.Word)
	}
	for _, f := range w.Fields {
		got, ok := a.field(f.Name)
		if !ok {
			parts = append(parts, "no "+f.Name)
			continue
		}
		parts = append(parts, Field{f.Name, got}.String())
	}
	return strings.Join(parts, " ")
}

// String returns the expectations as they are written.
func (want *Want) String() string {
	var parts []string
	switch want.Word {
	case "":
	case "error":
		parts = append(parts, "error="+string(want.Code))
	case "allowed":
		parts = append(parts, fmt.Sprintf("allowed=%d", want.Allowed))
	default:
		parts = append(parts, want.Word)
	}
	for _, f := range want.Fields {
		parts = append(parts, f.String())
	}
	return strings.Join(parts, " ")
}

// String returns name=value, with the value as a Go string literal where it must be one.
func (f Field) String() string {
	if f.Value == "" || strings.ContainsFunc(f.Value, func(r rune) bool { return r <= ' ' || r == '"' || r == '`' || r == 0x7f }) {
		return fmt.Sprintf("%s=%q", f.Name, f.Value)
	}
	return f.Name + "=" + f.Value
}
