// Package demoview shows a demo to a person: live on a terminal, a line a second elsewhere, and a summary at the end.
package demoview

import (
	"context"
	"errors"
	"io"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/lipgloss"

	"github.com/headgate-io/headgate/demo"
)

// LiveEvery is how often the live view wants a snapshot.
const LiveEvery = 500 * time.Millisecond

// Live is a view that fills a terminal.
type Live struct {
	program *tea.Program
	done    chan error
}

// StartLive takes over the terminal out and, if in is not nil, its keyboard. quit is called when the person at it wants
// to end; the view stays until Close. Close must be called.
func StartLive(in io.Reader, out io.Writer, quit func()) *Live {
	m := model{style: newStyles(lipgloss.NewRenderer(out)), quit: quit, width: 80, height: 24}
	l := &Live{
		program: tea.NewProgram(m, tea.WithInput(in), tea.WithOutput(out), tea.WithAltScreen(), tea.WithoutSignalHandler()),
		done:    make(chan error, 1),
	}
	go func() {
		_, err := l.program.Run()
		l.done <- err
	}()
	return l
}

// Watch shows a snapshot. It is what [demo.Config.Watch] asks for.
func (l *Live) Watch(s demo.Snapshot) { l.program.Send(s) }

// Close gives the terminal back.
func (l *Live) Close() error {
	l.program.Quit()
	if err := <-l.done; err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
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

// Init implements [tea.Model].
func (m model) Init() tea.Cmd { return nil }

// Update implements [tea.Model].
func (m model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case demo.Snapshot:
		m.past = append(m.past, msg)
		if len(m.past) > keep {
			m.past = append([]demo.Snapshot(nil), m.past[len(m.past)-keep:]...)
		}
	case tea.KeyMsg:
		switch msg.String() {
		case "q", "esc", "ctrl+c":
			m.leaving = true
			m.quit()
		}
	}
	return m, nil
}

// View implements [tea.Model].
func (m model) View() string { return m.render() }
