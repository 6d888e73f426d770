package httpverdict

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"
)

var errBroken = errors.New("broken")

// slowly gives its parts one per pause, and then the end.
type slowly struct {
	parts  []string
	pause  time.Duration
	end    error
	closed int
}

func (s *slowly) Read(p []byte) (int, error) {
	time.Sleep(s.pause)
	if len(s.parts) == 0 {
		return 0, s.end
	}
	n := copy(p, s.parts[0])
	if s.parts[0] = s.parts[0][n:]; s.parts[0] == "" {
		s.parts = s.parts[1:]
	}
	return n, nil
}

func (s *slowly) Close() error {
	s.closed++
	return nil
}

func TestPeek(t *testing.T) {
	for _, c := range []struct {
		name   string
		src    io.Reader
		length int64
		most   int
		want   string
		err    error
		rest   string // what is read after it
		end    error
		came   int64 // by the look alone
	}{
		{"empty", strings.NewReader(""), -1, 4, "", nil, "", nil, 0},
		{"short", strings.NewReader("abc"), 3, 4, "abc", nil, "abc", nil, 3},
		{"just fits", strings.NewReader("abcd"), 4, 4, "abcd", nil, "abcd", nil, 4},
		{"just fits, of unknown length", strings.NewReader("abcd"), -1, 4, "abcd", nil, "abcd", nil, 4},
		{"too long", strings.NewReader("abcdef"), -1, 4, "", ErrBodyTooLarge, "abcdef", nil, 5},
		{"too long, as it says", strings.NewReader("abcdef"), 6, 4, "", ErrBodyTooLarge, "abcdef", nil, 0},
		{"byte by byte", iotest.OneByteReader(strings.NewReader("abcdef")), -1, 600, "abcdef", nil, "abcdef", nil, 6},
		{"the end with the data", iotest.DataErrReader(strings.NewReader("abcd")), -1, 4, "abcd", nil, "abcd", nil, 4},
		{"broken", io.MultiReader(strings.NewReader("ab"), iotest.ErrReader(errBroken)), -1, 4, "", errBroken, "ab", errBroken, 2},
		{"broken behind the look", io.MultiReader(strings.NewReader("abcde"), iotest.ErrReader(errBroken)), -1, 4, "", ErrBodyTooLarge, "abcde", errBroken, 5},
		{"growing", strings.NewReader(strings.Repeat("x", 5000)), -1, 5000, strings.Repeat("x", 5000), nil, strings.Repeat("x", 5000), nil, 5000},
	} {
		t.Run(c.name, func(t *testing.T) {
			ended := 0
			b := NewPeekedBody(io.NopCloser(c.src), c.length, func() { ended++ })
			for range 2 {
				if got, err := b.Peek(t.Context(), c.most); string(got) != c.want || err != c.err {
					t.Errorf("peek: %q %v, want %q %v", got, err, c.want, c.err)
				}
			}
			if b.Came() != c.came {
				t.Errorf("the look read %d bytes, want %d", b.Came(), c.came)
			}
			rest, err := io.ReadAll(b)
			if string(rest) != c.rest || err != c.end || (ended == 1) != (c.end == nil) {
				t.Errorf("then %q %v, the end told %d times; want %q %v", rest, err, ended, c.rest, c.end)
			}
			if got, err := b.Peek(t.Context(), c.most); string(got) != c.want || err != c.err || b.Came() != int64(len(c.rest)) {
				t.Errorf("peek when all is over: %q %v, want %q %v; came %d", got, err, c.want, c.err, b.Came())
			}
		})
	}
}

func TestPeekLess(t *testing.T) {
	b := NewPeekedBody(io.NopCloser(strings.NewReader("abcd")), 4, nil)
	if got, err := b.Peek(t.Context(), 10); string(got) != "abcd" || err != nil {
		t.Fatalf("%q %v", got, err)
	}
	if got, err := b.Peek(t.Context(), 3); got != nil || err != ErrBodyTooLarge {
		t.Errorf("with less room: %q %v, want ErrBodyTooLarge", got, err)
	}
}

// The end of the time ends the look, not the body.
func TestPeekInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &slowly{parts: []string{"ab", "cd", "ef"}, pause: 2 * time.Second, end: io.EOF}
		b := NewPeekedBody(src, -1, nil)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		start := time.Now()
		if got, err := b.Peek(ctx, 100); got != nil || err != context.DeadlineExceeded || time.Since(start) != 3*time.Second {
			t.Errorf("after %s: %q %v", time.Since(start), got, err)
		}
		if !b.Pending() {
			t.Error("the read that is under way is not pending")
		}
		if b.Close(); src.closed != 0 {
			t.Error("a body that is being read was closed")
		}
		first := make([]byte, 10)
		n, err := b.Read(first) // waits for the goroutine
		if string(first[:n]) != "abcd" || err != nil || time.Since(start) != 4*time.Second || b.Pending() {
			t.Errorf("after %s: %q %v", time.Since(start), first[:n], err)
		}
		if rest, err := io.ReadAll(b); string(rest) != "ef" || err != nil {
			t.Errorf("then %q %v", rest, err)
		}
		if got, err := b.Peek(t.Context(), 100); got != nil || err != context.DeadlineExceeded {
			t.Errorf("again: %q %v, want the same error", got, err)
		}
		if b.Close(); src.closed != 1 {
			t.Errorf("closed %d times", src.closed)
		}
	})
}

// Whatever the sizes and times, every byte goes on once and in order, also while several look at once.
func TestPeekLosesNothing(t *testing.T) {
	for seed := range uint64(200) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			text := strings.Repeat("0123456789abcdefghijklmnopqrstuvwxyz", random.IntN(40))
			src := &slowly{pause: time.Duration(random.IntN(3)) * time.Millisecond, end: io.EOF}
			for rest := text; rest != ""; {
				n := 1 + random.IntN(min(len(rest), 100))
				src.parts, rest = append(src.parts, rest[:n]), rest[n:]
			}
			b := NewPeekedBody(src, -1, nil)
			most := random.IntN(1500)
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(random.IntN(40))*time.Millisecond)
			defer cancel()
			var lookers sync.WaitGroup
			for range 3 {
				lookers.Go(func() {
					got, err := b.Peek(ctx, most)
					if err == nil && string(got) != text || err == ErrBodyTooLarge && len(text) <= most {
						t.Errorf("seed %d: peek of %d: %d bytes %v, of %d", seed, most, len(got), err, len(text))
					}
				})
			}
			lookers.Wait()
			if got, err := io.ReadAll(iotest.OneByteReader(b)); string(got) != text || err != nil || b.Came() != int64(len(text)) {
				t.Errorf("seed %d: %d bytes %v of %d, counted %d", seed, len(got), err, len(text), b.Came())
			}
		})
	}
}

// What a client announces and does not send takes no memory.
func TestAnnouncedBodyTakesNoRoom(t *testing.T) {
	room := 0
	b := NewPeekedBody(io.NopCloser(readerFunc(func(p []byte) (int, error) {
		room = len(p)
		return 0, io.ErrUnexpectedEOF
	})), 64<<10, nil)
	if _, err := b.Peek(t.Context(), 64<<10); err != io.ErrUnexpectedEOF {
		t.Errorf("%v", err)
	}
	if room == 0 || room > firstLook {
		t.Errorf("room for %d bytes before any has come", room)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
