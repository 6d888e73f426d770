package stale

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"
)

var errBroken = errors.New("broken")

func TestBodyIsReadAhead(t *testing.T) {
	long := strings.Repeat("0123456789", 30_000)
	for _, c := range []struct {
		name string
		src  io.Reader
		want string
		err  error
		kept bool
	}{
		{"short", strings.NewReader("hello"), "hello", nil, true},
		{"empty", strings.NewReader(""), "", nil, true},
		{"in bytes", iotest.OneByteReader(strings.NewReader("hello")), "hello", nil, true},
		{"the end with the data", iotest.DataErrReader(strings.NewReader("hello")), "hello", nil, true},
		{"too long", strings.NewReader(long), long, nil, false},
		{"too long, with the end", iotest.DataErrReader(strings.NewReader(long)), long, nil, false},
		{"broken", io.MultiReader(strings.NewReader("hel"), iotest.ErrReader(errBroken)), "hel", errBroken, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			cache := mustNew(t, Config{MaxAnswer: 100_000})
			_, k := cache.Join(t.Context(), same(0))
			if !k.Header(200, fields()) {
				t.Fatal("not taken down")
			}
			body := k.Body(io.NopCloser(c.src))
			text, err := io.ReadAll(iotest.HalfReader(body))
			if string(text) != c.want || err != c.err || (cache.Kept(same(0)) != nil) != c.kept {
				t.Errorf("%d bytes %v, kept %t; want %d %v %t", len(text), err, cache.Kept(same(0)) != nil, len(c.want), c.err, c.kept)
			}
		})
	}
}

// Who waits has the answer while the client that it was made for has read nothing.
func TestSlowClientHoldsNobodyUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cache := mustNew(t, Config{})
		_, k := cache.Join(t.Context(), same(0))
		waited := make(chan string)
		go func() {
			a, _ := cache.Join(t.Context(), same(0))
			waited <- got(a, same(0)).Body.String()
		}()
		synctest.Wait()
		start := time.Now()
		k.Header(200, fields())
		body := k.Body(io.NopCloser(strings.NewReader("hello")))
		if text := <-waited; text != "hello" || time.Since(start) != 0 {
			t.Errorf("%q after %s", text, time.Since(start))
		}
		if text, err := io.ReadAll(body); string(text) != "hello" || err != nil {
			t.Errorf("the client reads %q %v", text, err)
		}
	})
}
