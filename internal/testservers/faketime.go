package testservers

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// FakeTime gives the server a clock that can be set while it runs: see RedisServer.SetClock. It needs Debian's faketime.
// The server is several times slower.
func FakeTime() RedisOption {
	return func(tb TB, s *RedisServer) {
		tb.Helper()
		s.fake = &fakeClock{file: filepath.Join(s.dir, "clock"), library: needFakeTime(tb)}
		if err := s.fake.set(0); err != nil {
			tb.Fatalf("%v", err)
		}
		tb.Cleanup(func() {
			if err := s.fake.tidy(); err != nil {
				tb.Logf("%v", err)
			}
		})
	}
}

// SetClock makes the server's clock differ from the machine's from now on, by a time ahead or, below 0, behind. What the
// server does after so much time, rather than at a time of the day, goes on undisturbed.
func (s *RedisServer) SetClock(ahead time.Duration) error {
	if s.fake == nil {
		return errors.New("testservers: a redis without FakeTime has the machine's clock")
	}
	return s.fake.set(ahead)
}

// fakeClock is what libfaketime is told.
type fakeClock struct {
	file, library string
	pids          []int
}

// needFakeTime returns the path of libfaketime, which lies where the program faketime has it from.
func needFakeTime(tb TB) string {
	tb.Helper()
	Need(tb, "faketime")
	for _, pattern := range []string{"/usr/lib/*/faketime/", "/usr/lib64/faketime/", "/usr/lib/faketime/"} {
		if found, _ := filepath.Glob(pattern + "libfaketime.so.1"); len(found) > 0 { // the pattern is well-formed
			return found[0]
		}
	}
	tb.Fatalf("testservers: faketime is installed and its libfaketime.so.1 is not where it is on Debian")
	return ""
}

// set writes the file anew and puts it in the place of the old one, since the server may be reading it.
func (f *fakeClock) set(ahead time.Duration) error {
	next := f.file + ".next"
	err := os.WriteFile(next, fmt.Appendf(nil, "%+.6f\n", ahead.Seconds()), 0o600)
	if err = errors.Join(err, os.Rename(next, f.file)); err != nil {
		return fmt.Errorf("testservers: the clock: %w", err)
	}
	return nil
}

// env makes a process use the clock. jemalloc, with which Debian builds Redis, asks for the time while it holds its lock
// for the first time; libfaketime then allocates to find out, and waits for that lock for ever. So the allocator of the C
// library stands in front of both, as its own library for debugging does it.
func (f *fakeClock) env() []string {
	if f == nil {
		return nil
	}
	return []string{
		"LD_PRELOAD=libc_malloc_debug.so.0:" + f.library, "FAKETIME_TIMESTAMP_FILE=" + f.file, "FAKETIME_NO_CACHE=1",
		"FAKETIME_DONT_FAKE_MONOTONIC=1",
	}
}

func (f *fakeClock) started(pid int) {
	if f != nil {
		f.pids = append(f.pids, pid)
	}
}

// tidy removes the shared memory that libfaketime leaves behind when its process is killed.
func (f *fakeClock) tidy() (err error) {
	for _, pid := range f.pids {
		for _, name := range []string{"/dev/shm/faketime_shm_%d", "/dev/shm/sem.faketime_sem_%d"} {
			if e := os.Remove(fmt.Sprintf(name, pid)); e != nil && !errors.Is(e, os.ErrNotExist) {
				err = errors.Join(err, fmt.Errorf("testservers: %w", e))
			}
		}
	}
	return err
}
