package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"
)

// maxSecretFile is the longest secret that a file can hold, in bytes.
const maxSecretFile = 4096

// ReadSecret reads a secret from a file, without the white space around it. One that is empty is none: what asks for it must not go on
// without. The error does not name the file.
func ReadSecret(file string) (string, error) {
	f, err := os.Open(file)
	var text []byte
	if err == nil {
		defer f.Close()
		text, err = io.ReadAll(io.LimitReader(f, maxSecretFile+1))
	}
	secret := strings.TrimSpace(string(text))
	path, ok := errors.AsType[*fs.PathError](err)
	switch {
	case ok:
		return "", path.Err
	case err != nil:
		return "", err
	case secret == "":
		return "", errors.New("it is empty")
	case len(text) > maxSecretFile:
		return "", fmt.Errorf("it has more than %d bytes", maxSecretFile)
	}
	return secret, nil
}

// leastBytes is how many different bytes a secret has at least. One at random of 16 hexadecimal digits has fewer once in ten million times.
const leastBytes = 5

// Repetitive tells that a secret is made of so few different bytes that nobody has drawn it at random.
func Repetitive(secret string) bool {
	seen := map[byte]bool{}
	for i := range len(secret) {
		seen[secret[i]] = true
	}
	return len(seen) < leastBytes
}

const (
	// rereadEvery is how often a file with secrets is looked at, and how long it must have rested to be taken up: one that is being
	// written can pass for a whole one.
	rereadEvery = time.Second
	// complainEvery is how often a file that cannot be used is logged again.
	complainEvery = time.Minute
)

// liveSecret is a file with secrets that are taken up when it changes. What cannot be used leaves in force what is, and is logged as long as it lasts.
type liveSecret struct {
	// name is that of the variable which names the file.
	name, file string
	// use puts what the file has in force, or says what is wrong with it, without quoting it. It returns what can be said of it.
	use func(text string) (said []any, err error)
	log *slog.Logger

	inForce, seen string // run's

	mu         sync.Mutex
	since      time.Time
	trouble    string
	complained time.Time
}

func newLiveSecret(name, file, inForce string, log *slog.Logger, use func(string) ([]any, error)) *liveSecret {
	return &liveSecret{name: name, file: file, use: use, log: log, inForce: inForce, seen: inForce, since: time.Now()}
}

// errNotRegular is of what can be read once, or waits for who writes: a pipe, a socket, a device.
var errNotRegular = errors.New("it is no regular file, which alone can be read again")

func regular(file string) error {
	info, err := os.Stat(file)
	path, ok := errors.AsType[*fs.PathError](err)
	switch {
	case ok:
		return path.Err
	case err == nil && !info.Mode().IsRegular():
		return errNotRegular
	}
	return err
}

// run looks at the file until ctx ends.
func (l *liveSecret) run(ctx context.Context) {
	if regular(l.file) == errNotRegular {
		l.log.Info("what "+l.name+" names is no regular file: it was read once, and another secret needs a restart", "file", l.file)
		return
	}
	again := time.NewTicker(rereadEvery)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-again.C:
			l.look(now)
		}
	}
}

// look takes up what has changed, and has not changed since the look before.
func (l *liveSecret) look(now time.Time) {
	text, err := "", regular(l.file)
	if err == nil {
		text, err = ReadSecret(l.file)
	}
	if err != nil {
		text = ""
	}
	rests := text == l.seen
	l.seen = text
	switch {
	case !rests:
	case err != nil:
		l.refuse(now, err)
	case text == l.inForce:
		l.good(now, nil)
	default:
		said, err := l.use(text)
		if err != nil {
			l.refuse(now, err)
			return
		}
		l.inForce = text
		l.good(now, said)
	}
}

// refuse logs why the file cannot be used: at once, and then every minute.
func (l *liveSecret) refuse(now time.Time, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if why := err.Error(); why != l.trouble || now.Sub(l.complained) >= complainEvery {
		l.trouble, l.complained = why, now
		l.log.Error("the file that "+l.name+" names cannot be used: what was read before stays in force, and a restart would fail", "file", l.file, "error", why)
	}
}

// good logs what was taken up, and that a file is good again.
func (l *liveSecret) good(now time.Time, said []any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if said != nil {
		l.since = now
		l.log.Info("the file that "+l.name+" names was taken up", append([]any{"file", l.file}, said...)...)
	} else if l.trouble != "" {
		l.log.Info("the file that "+l.name+" names is as it was, and good again", "file", l.file)
	}
	l.trouble = ""
}

// SecretStatus is a file with secrets.
type SecretStatus struct {
	// Variable names the file in the environment.
	Variable string `json:"variable"`
	File     string `json:"file"`
	// Since is when what is in force was read.
	Since time.Time `json:"since"`
	// Trouble is why what lies in the file now is not in force, left out if it is.
	Trouble string `json:"trouble,omitempty"`
}

func (l *liveSecret) status() SecretStatus {
	l.mu.Lock()
	defer l.mu.Unlock()
	return SecretStatus{Variable: l.name, File: l.file, Since: l.since.UTC().Truncate(time.Millisecond), Trouble: l.trouble}
}
