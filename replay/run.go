package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
)

// Bounds and defaults of a replay.
const (
	// DefaultWindow is how late a line may be and still find its place.
	DefaultWindow = 10 * time.Second
	// MaxWindow bounds that.
	MaxWindow = 10 * time.Minute
	// MaxFiles bounds the logs of one replay.
	MaxFiles = 10_000
	// batchSize is how many requests go from the reader to the judge at a time, batches how many are on their way.
	batchSize = 256
	batches   = 16
)

// Config says what to replay. Policy and Files have no default.
type Config struct {
	Policy Policy
	// Against, if not nil, is asked about the same requests, and the report compares the two.
	Against *Policy
	// Files are the logs; [Stdin] is standard input. What belongs together in time is read together, whatever the order.
	Files []string
	// Stdin is what [Stdin] reads.
	Stdin io.Reader
	// Fields maps the fields of logs in JSON.
	Fields Fields
	// Window is how late a line may be and still be judged at its own time: 0 to MaxWindow. Default (negative): DefaultWindow.
	Window time.Duration
	// Progress, if not nil, is kept up to date.
	Progress *Progress
}

func (c *Config) check() error {
	switch {
	case c.Policy.Decider == nil:
		return errors.New("replay: there is no policy")
	case c.Against != nil && c.Against.Decider == nil:
		return errors.New("replay: there is no policy to compare with")
	case len(c.Files) == 0:
		return errors.New("replay: there is no log; name one with --log")
	case len(c.Files) > MaxFiles:
		return fmt.Errorf("replay: %d logs are too many; %d are allowed", len(c.Files), MaxFiles)
	case c.Window > MaxWindow:
		return fmt.Errorf("replay: the window %s is above %s", c.Window, MaxWindow)
	}
	for i, name := range c.Files {
		if slices.Contains(c.Files[:i], name) {
			return fmt.Errorf("replay: log %s is named twice", shown(name, 200))
		}
	}
	if slices.Contains(c.Files, Stdin) && c.Stdin == nil {
		return errors.New("replay: there is no standard input")
	}
	return nil
}

// Run replays logs and reports what the policy would have done. When ctx ends it stops, and reports what it has seen until
// then as interrupted. An error means that there is no report: a log that cannot be opened, or that holds no request, is a
// [*LogError].
func Run(ctx context.Context, cfg Config) (*Report, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	if cfg.Window < 0 {
		cfg.Window = DefaultWindow
	}
	if cfg.Progress == nil {
		cfg.Progress = &Progress{}
	}
	r := &reading{
		cfg: cfg, count: &logCount{progress: cfg.Progress}, reuse: &pool{}, out: make(chan []*entry, batches), back: make(chan []*entry, batches+2),
	}
	reader, stop := context.WithCancel(ctx)
	defer stop()
	go r.run(reader)
	j := newJudge(&cfg)
	// The log has what became of a request; that somebody wants to stop is no reason to judge it otherwise.
	judging := context.WithoutCancel(ctx)
	for batch := range r.out {
		for _, e := range batch {
			j.judge(judging, e)
		}
		cfg.Progress.Judged.Store(j.requests)
		select {
		case r.back <- batch:
		default: // enough are on their way back
		}
	}
	j.end()
	if r.err != nil {
		return nil, r.err
	}
	if j.requests == 0 && ctx.Err() == nil {
		return nil, r.nothing()
	}
	return j.report(r.count, r.files, ctx.Err() != nil), nil
}

// reading reads the logs in a goroutine of its own. Its results are there when out is closed.
type reading struct {
	cfg   Config
	count *logCount
	reuse *pool
	out   chan []*entry
	back  chan []*entry
	files []FileReport
	err   error
}

func (r *reading) run(ctx context.Context) {
	defer close(r.out)
	m, err := newMerge(ctx, r.cfg.Files, r.source(ctx))
	if err != nil {
		r.err = err
		return
	}
	r.err = r.readAll(ctx, m)
	m.close()
	r.files = m.formats
}

func (r *reading) source(ctx context.Context) func(string) *source {
	fields := r.cfg.Fields.table()
	stopped, open := func() bool { return ctx.Err() != nil }, openFile(ctx)
	return func(name string) *source {
		return &source{name: name, stdin: r.cfg.Stdin, count: r.count, reuse: r.reuse, fields: fields, stopped: stopped, openFile: open}
	}
}

func (r *reading) readAll(ctx context.Context, m *merge) error {
	order := &reorder{window: r.cfg.Window.Microseconds(), count: r.count}
	batch := r.batch()
	for {
		e, err := m.next() // of a replay that is to end, what has been read
		if err != nil {
			r.out <- order.rest(batch)
			return unlessOver(err, ctx.Err() != nil)
		}
		if !e.addr.IsValid() {
			r.count.unsaid++
		}
		if batch = order.push(e, batch); len(batch) >= batchSize {
			r.out <- batch // it is read until it is closed
			batch = r.batch()
		}
	}
}

// unlessOver returns an error that is more than the end of the logs, or of the replay.
func unlessOver(err error, over bool) error {
	if over || errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// batch returns an empty batch. Entries that are done with come back in the old ones.
func (r *reading) batch() []*entry {
	select {
	case b := <-r.back:
		r.reuse.give(b...)
		clear(b)
		return b[:0]
	default:
		return make([]*entry, 0, batchSize+8)
	}
}

// nothing says that there was no request.
func (r *reading) nothing() error {
	name := shown(r.cfg.Files[0], 200)
	if len(r.cfg.Files) > 1 {
		name = fmt.Sprintf("%s and %d more", name, len(r.cfg.Files)-1)
	}
	if r.count.notHTTP > 0 {
		return &LogError{name, fmt.Errorf("no line is an HTTP request that reaches a policy, of %d", r.count.lines)}
	}
	return &LogError{name, errors.New("the log is empty")}
}
