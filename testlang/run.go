package testlang

import (
	"context"
	"crypto/rand"
	"fmt"
	"path/filepath"
	"time"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/middleware/httpverdict"
)

// Config says what a file runs against.
type Config struct {
	// Limiter decides; it must be [headgate.Timed]. Refunds and slots need [headgate.Refunder] and [headgate.Slots]. Its
	// states need not be empty: a file runs under slots of its own.
	Limiter headgate.Limiter
	// Compile makes a policy ready to judge requests with the limiter it is given; what it returns must be
	// [httpverdict.Timed]. nil: a file with a policy fails. If it has a method HasDimension(name string) bool, a line that sets
	// a dimension which the policy does not have fails: it would test something else than it says.
	Compile func(ctx context.Context, source PolicySource) (httpverdict.Decider, error)
	// Trace, if set, is called for every run of every line, in order. It must not keep what it is given.
	Trace func(Trace)
	// Namespace begins the name of every slot. Two runs with the same one meet each other's states. Default: random.
	Namespace string
}

// PolicySource is a policy document to compile.
type PolicySource struct {
	// Path is the document's file, found from the folder of the test file; "" if it stands in the test file itself.
	Path string
	// Text is the document if Path is "".
	Text []byte
	// Dir is the folder of the document, or of the test file.
	Dir string
	// Limiter is where the policy keeps its states.
	Limiter headgate.Limiter
}

// Trace is one run of a line.
type Trace struct {
	File string
	Step *Step
	// Run counts the runs of the line from 1; At is the offset at which it ran.
	Run int64
	At  time.Duration
	// Got is the answer in the words of the language.
	Got string
	// Verdict is the answer of a policy, nil if the line is about limits. Its Matches say what became of each rule, if the
	// policy was compiled to explain.
	Verdict *httpverdict.Verdict
}

// Report is what came of a file.
type Report struct {
	File string
	// Cases and Lines are how many there were; Runs is how often lines ran in all.
	Cases, Lines int
	Runs         int64
	// Failures has one entry for each line that failed, in the order of the file.
	Failures []Failure
}

// OK tells whether every line answered what it expects.
func (r *Report) OK() bool { return len(r.Failures) == 0 }

// Failure is a line that answered something else than it expects: its first run that did.
type Failure struct {
	File string
	Line int
	Text string
	// Run says which of several runs it was, "" if there is one only.
	Run string
	// Want and Got are in the words of the language.
	Want, Got string
}

// String returns file:line: the line, what was expected and what came.
func (f Failure) String() string {
	run := ""
	if f.Run != "" {
		run = " (" + f.Run + ")"
	}
	return fmt.Sprintf("%s:%d: %s\n\texpected %s\n\tgot      %s%s", f.File, f.Line, f.Text, f.Want, f.Got, run)
}

// Run runs a file, case by case and line by line, on one goroutine. The error is that of the context or of the Config; a
// line that fails is in the Report.
func Run(ctx context.Context, file *File, cfg Config) (*Report, error) {
	if cfg.Limiter == nil {
		return nil, &headgate.Error{Code: headgate.CodeUnsupported, Charge: -1, Message: "testlang: Config.Limiter is missing"}
	}
	if _, ok := cfg.Limiter.(headgate.Timed); !ok {
		return nil, &headgate.Error{Code: headgate.CodeUnsupported, Charge: -1,
			Message: fmt.Sprintf("testlang: the limiter %T is not headgate.Timed, so it cannot run in virtual time", cfg.Limiter)}
	}
	if cfg.Namespace == "" {
		cfg.Namespace = "test-" + rand.Text()
	}
	r := &runner{cfg: cfg, file: file, report: &Report{File: file.Name, Cases: len(file.Cases)}}
	for i, c := range file.Cases {
		if err := r.runCase(ctx, i, c); err != nil {
			return r.report, err
		}
	}
	return r.report, nil
}

// runner is one run of a file.
type runner struct {
	cfg    Config
	file   *File
	report *Report
}

// subject is what the steps of a case are done to.
type subject interface {
	do(ctx context.Context, now time.Time, a Action) answer
}

// answer is what came of one run of a line.
type answer interface {
	// is tells whether a word such as "allow" is true of it.
	is(word string) bool
	// err is the error, nil if there is an answer.
	err() error
	code() headgate.Code
	// field returns an expectation's value; ok is false if it has none.
	field(name string) (value string, ok bool)
	// String returns the whole in the words of the language.
	String() string
}

func (r *runner) runCase(ctx context.Context, number int, c *Case) error {
	limiter := Within(r.cfg.Limiter, fmt.Sprintf("%s/%d/", r.cfg.Namespace, number))
	var s subject = newLimits(limiter, c)
	if c.Policy != nil {
		decider, err := r.compile(ctx, limiter, c.Policy)
		if err != nil {
			r.fail(Failure{Line: c.Policy.Line, Text: "policy " + c.Policy.Path, Want: "a policy that loads", Got: err.Error()})
			return ctx.Err()
		}
		s = &policy{decider: decider}
	}
	for _, step := range c.Steps {
		if p, ok := s.(*policy); ok {
			if name := p.unknownDimension(step.Do); name != "" {
				r.report.Lines++
				r.fail(Failure{Line: step.Line, Text: step.Text, Want: "a policy with the dimension " + name, Got: "a policy without it"})
				continue
			}
		}
		if err := r.runStep(ctx, s, step); err != nil {
			return err
		}
	}
	return nil
}

func (r *runner) fail(f Failure) {
	f.File = r.file.Name
	r.report.Failures = append(r.report.Failures, f)
}

func (r *runner) compile(ctx context.Context, limiter headgate.Limiter, p *Policy) (httpverdict.Timed, error) {
	if r.cfg.Compile == nil {
		return nil, fmt.Errorf("policies cannot be compiled here")
	}
	source := PolicySource{Text: p.Text, Dir: filepath.Dir(r.file.Name), Limiter: limiter}
	if p.Path != "" {
		source.Path = p.Path
		if !filepath.IsAbs(p.Path) {
			source.Path = filepath.Join(source.Dir, p.Path)
		}
		source.Dir = filepath.Dir(source.Path)
	}
	d, err := r.cfg.Compile(ctx, source)
	if err != nil {
		return nil, err
	}
	timed, ok := d.(httpverdict.Timed)
	if !ok {
		return nil, fmt.Errorf("the policy is a %T, which is not httpverdict.Timed and cannot run in virtual time", d)
	}
	return timed, nil
}

// runStep runs one line as often as it says. A line that has failed goes on to run: later lines count on its effects.
func (r *runner) runStep(ctx context.Context, s subject, step *Step) error {
	r.report.Lines++
	check := checker{step: step}
	for at := step.From; ; at += step.Every {
		for range step.Repeat {
			if err := ctx.Err(); err != nil {
				return err
			}
			answer := s.do(ctx, step.Start.Add(at), step.actionOf(check.runs))
			check.run(at, answer)
			r.report.Runs++
			r.trace(step, check.runs, at, answer)
		}
		if step.To-at < step.Every {
			break
		}
	}
	if f := check.finish(); f != nil {
		r.fail(*f)
	}
	return nil
}

func (r *runner) trace(step *Step, run int64, at time.Duration, a answer) {
	if r.cfg.Trace == nil {
		return
	}
	t := Trace{File: r.file.Name, Step: step, Run: run, At: at, Got: a.String()}
	if v, ok := a.(*verdict); ok {
		t.Verdict = v.Verdict
	}
	r.cfg.Trace(t)
}
