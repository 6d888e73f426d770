package limitertest

import (
	"context"
	"embed"
	"path"
	"testing"

	headgate "github.com/headgate-io/headgate"
	"github.com/headgate-io/headgate/testlang"
)

//go:embed testdata/*.test
var testdata embed.FS

// files runs the .test files of testdata.
func (s *suite) files(t *testing.T) {
	l := s.timed(t)
	limiter, ok := l.(headgate.Limiter)
	if !ok {
		t.Fatalf("%T is no headgate.Limiter", l)
	}
	entries, err := testdata.ReadDir("testdata")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		t.Run(e.Name(), func(t *testing.T) {
			text, err := testdata.ReadFile(path.Join("testdata", e.Name()))
			if err != nil {
				t.Fatal(err)
			}
			file, err := testlang.Parse(e.Name(), text)
			if err != nil {
				t.Fatal(err)
			}
			watch := watched(5*stuck, func() string { return "the lines of " + e.Name() })
			defer watch.Stop()
			report, err := testlang.Run(context.Background(), file, testlang.Config{Limiter: limiter, Namespace: s.key(t, "")})
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range report.Failures {
				t.Error(f)
			}
		})
	}
}
