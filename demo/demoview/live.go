// Package demoview shows a demo to a person: live on a terminal, a line a second elsewhere, and a summary at the end.
package demoview

import (
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/charmbracelet/lipgloss"
	"github.com/muesli/cancelreader"
	"golang.org/x/term"

	"github.com/headgate-io/headgate/demo"
)

// LiveEvery is how often the live view wants a snapshot.
const LiveEvery = 500 * time.Millisecond

// What a terminal is told. It is asked nothing: one that does not answer would hold the program up.
const (
	enterScreen = "\x1b[?1049h\x1b[?25l" // a screen of its own, no cursor
	leaveScreen = "\x1b[?25h\x1b[?1049l"
	toTop       = "\x1b[H"
	endLine     = "\x1b[K" // clears what was there before
	endScreen   = "\x1b[J"
)

// Live is a view that fills a terminal. It is safe for concurrent use.
type Live struct {
	out  io.Writer
	keys cancelreader.CancelReader // nil without a keyboard
	done chan struct{}             // closes when the keyboard is read no more
	calm func() error              // gives the keyboard its old mode

	mu  sync.Mutex
	m   model
	err error // of the first write that failed: nothing is drawn after it
}

// StartLive takes over the terminal out and, if in is not nil, its keyboard. quit is called when the person at it wants
// to end; the view stays until Close. Close must be called.
func StartLive(in io.Reader, out io.Writer, quit func()) *Live {
	l := &Live{
		out: out, done: make(chan struct{}), calm: func() error { return nil },
		m: model{style: newStyles(lipgloss.NewRenderer(out)), quit: quit, width: 80, height: 24},
	}
	l.write(enterScreen)
	l.draw()
	if in != nil {
		l.listen(in)
	} else {
		close(l.done)
	}
	return l
}

// listen reads the keyboard, key by key and without an echo. One that cannot be read so is left alone: Ctrl-C still ends.
func (l *Live) listen(in io.Reader) {
	if f, ok := in.(*os.File); ok {
		before, err := term.MakeRaw(int(f.Fd()))
		if err != nil {
			close(l.done)
			return
		}
		l.calm = func() error { return term.Restore(int(f.Fd()), before) }
	}
	keys, err := cancelreader.NewReader(in)
	if err != nil {
		close(l.done)
		return
	}
	l.keys = keys
	go func() {
		defer close(l.done)
		for chunk := make([]byte, 64); ; {
			n, err := keys.Read(chunk)
			if err != nil {
				return
			}
			l.press(string(chunk[:n]))
		}
	}()
}

func (l *Live) press(keys string) {
	l.mu.Lock()
	ends := l.m.press(keys)
	l.mu.Unlock()
	if ends {
		l.draw()
		l.m.quit()
	}
}

// Watch shows a snapshot. It is what [demo.Config.Watch] asks for.
func (l *Live) Watch(s demo.Snapshot) {
	l.mu.Lock()
	l.m.see(s)
	l.mu.Unlock()
	l.draw()
}

// draw fills the screen, in the size that it has by now.
func (l *Live) draw() {
	l.mu.Lock()
	if f, ok := l.out.(*os.File); ok {
		if width, height, err := term.GetSize(int(f.Fd())); err == nil && width > 0 && height > 0 {
			l.m.width, l.m.height = width, height
		}
	}
	picture := l.m.render()
	l.mu.Unlock()
	// A raw terminal needs the carriage return.
	l.write(toTop + strings.ReplaceAll(picture, "\n", endLine+"\r\n") + endLine + endScreen)
}

func (l *Live) write(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		_, l.err = io.WriteString(l.out, text)
	}
}

// Close gives the terminal back.
func (l *Live) Close() error {
	// A reader that cannot be cancelled, which no terminal is, ends with its next key.
	if l.keys != nil && l.keys.Cancel() {
		<-l.done
		_ = l.keys.Close() // what it read from stays open
	}
	l.write(leaveScreen)
	l.mu.Lock()
	defer l.mu.Unlock()
	return errors.Join(l.calm(), l.err)
}

// model is the state of the view: the latest snapshot, and enough of those before to draw rates.
type model struct {
	style         styles
	quit          func()
	leaving       bool
	width, height int
	past          []demo.Snapshot
}

// keep bounds the snapshots that are kept: as many as a very wide terminal has columns.
const keep = 400

func (m *model) see(s demo.Snapshot) {
	m.past = append(m.past, s)
	if len(m.past) > keep {
		m.past = append([]demo.Snapshot(nil), m.past[len(m.past)-keep:]...)
	}
}

// press reports whether keys ask to end, for the first time. An escape that comes with more is another key, such as an
// arrow.
func (m *model) press(keys string) bool {
	if m.leaving || !strings.ContainsAny(keys, "qQ\x03") && keys != "\x1b" || len(keys) > 1 && keys[0] == 0x1b {
		return false
	}
	m.leaving = true
	return true
}
