package policy

import (
	"time"
)

// Degradation says when the levels L2 and L3 are in force.
type Degradation struct {
	// Automatic tells whether L2 turns on by itself, when more than DeniedDevices (0 to 1) of the devices have been denied
	// for For; it is tried to turn it off after RetryAfter.
	Automatic       bool
	DeniedDevices   float64
	For, RetryAfter time.Duration
	// L3Allow has the names of the lists whose members pass at L3.
	L3Allow []string
}

// Overload says what is done when the process is in danger.
type Overload struct {
	// CPU and Memory are shares, 0 to 1.
	CPU, Memory float64
	// Pass tells to skip the limits in place of shedding.
	Pass bool
}

func (d *decoder) decodeDegradation(n *node) {
	d.p.degradation = Degradation{DeniedDevices: 0.2, For: time.Minute, RetryAfter: 10 * time.Minute}
	if n == nil {
		return
	}
	s := scope{d, "degradation"}
	fields := s.fields(n, degradationMapping)
	if n := fields["l2"]; n != nil {
		scope{d, "degradation: l2"}.decodeL2(n)
	}
	if n := fields["l3"]; n != nil {
		s := scope{d, "degradation: l3"}
		allow := s.required(n, s.fields(n, l3Mapping), "allow")
		d.p.l3Allow = s.listRefs(allow, "allow", true)
		for _, i := range d.p.l3Allow {
			d.p.degradation.L3Allow = append(d.p.degradation.L3Allow, d.p.lists[i].name)
		}
	}
}

func (s scope) decodeL2(n *node) {
	fields, to := s.fields(n, l2Mapping), &s.p.degradation
	to.Automatic = s.boolean(fields["automatic"], "automatic")
	if n := fields["denied_devices"]; n != nil {
		to.DeniedDevices = s.threshold(n, "denied_devices")
	}
	to.For = s.durationIn(fields["for"], "for", to.For, time.Second, 24*time.Hour)
	to.RetryAfter = s.durationIn(fields["retry_after"], "retry_after", to.RetryAfter, time.Second, 24*time.Hour)
}

func (d *decoder) decodeOverload(n *node) {
	d.p.overload = Overload{CPU: 0.9, Memory: 0.85}
	if n == nil {
		return
	}
	s := scope{d, "overload"}
	fields := s.fields(n, overloadMapping)
	if n := fields["cpu"]; n != nil {
		d.p.overload.CPU = s.threshold(n, "cpu")
	}
	if n := fields["memory"]; n != nil {
		d.p.overload.Memory = s.threshold(n, "memory")
	}
	d.p.overload.Pass = s.oneOf(fields["action"], "action", "shed", "pass") == "pass"
}

// threshold reads a percentage that something must be above. 0% would be passed by everything, or stand for what nobody has said.
func (s scope) threshold(n *node, name string) float64 {
	before := len(s.problems)
	share := s.percent(n, name)
	if share == 0 && len(s.problems) == before {
		s.fail(n.pos, "%s must be above 0%%, not %s: it would be in force always; leave it out for the default", name, n.describe())
	}
	return share
}

// warn notes what is allowed and not as it looks.
func (d *decoder) warn(at pos, message string) {
	if len(d.p.warnings) < maxProblems {
		d.p.warnings = append(d.p.warnings, Problem{File: d.file, Line: at.line, Column: at.column, Message: message})
	}
}
