package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/charmbracelet/x/ansi"
	"golang.org/x/term"

	"github.com/headgate-io/headgate/replay"
)

// progressEvery is how often the bar is drawn.
const progressEvery = 200 * time.Millisecond

// progressBar draws how far a replay is, on a terminal.
type progressBar struct {
	out   io.Writer
	width func() int // of the terminal, 0 if it is unknown
	from  *replay.Progress
	begun time.Time
	quit  chan struct{}
	ended sync.WaitGroup
}

// startProgress draws a bar until it is stopped, if stderr is a terminal.
func startProgress(std streams, from *replay.Progress, none bool) *progressBar {
	b := &progressBar{out: std.err, from: from, begun: time.Now(), quit: make(chan struct{})}
	f, ok := std.err.(*os.File)
	if none || !ok || !term.IsTerminal(int(f.Fd())) || os.Getenv("TERM") == "dumb" {
		return b
	}
	b.width = func() int {
		width, _, err := term.GetSize(int(f.Fd()))
		if err != nil {
			return 0
		}
		return width
	}
	b.ended.Go(b.draw)
	return b
}

func (b *progressBar) draw() {
	ticker := time.NewTicker(progressEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			fmt.Fprint(b.out, "\r"+fitted(progressLine(b.from, time.Since(b.begun)), b.width())+wipe)
		case <-b.quit:
			fmt.Fprint(b.out, "\r"+wipe)
			return
		}
	}
}

func (b *progressBar) stop() {
	close(b.quit)
	b.ended.Wait()
}

// wipe is the control sequence that clears what is right of the cursor.
const wipe = "\x1b[K"

// fitted cuts a line that a terminal would break, so that the next one is drawn over it.
func fitted(line string, width int) string {
	if width <= 1 {
		return line
	}
	return ansi.Truncate(line, width-1, "…")
}

// progressLine is one line: a bar where the size of the logs is known, the requests so far, and the time that is left.
func progressLine(p *replay.Progress, took time.Duration) string {
	const width = 30
	judged, read, total := p.Judged.Load(), p.Read.Load(), p.Total.Load()
	speed := int64(float64(judged) / max(took.Seconds(), 0.001))
	if total <= 0 {
		return fmt.Sprintf("%d requests, %d/s", judged, speed)
	}
	done := min(float64(read)/float64(total), 1)
	filled := int(done * width)
	line := fmt.Sprintf("[%s%s] %3.0f %%  %d requests, %d/s", strings.Repeat("█", filled), strings.Repeat("░", width-filled), done*100, judged, speed)
	if done > 0.02 && done < 1 {
		left := time.Duration(float64(took) * (1 - done) / done).Round(time.Second)
		line += fmt.Sprintf(", %s left", left)
	}
	return line
}
