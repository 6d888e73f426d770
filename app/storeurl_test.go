package app

import (
	"strings"
	"testing"
)

func TestStoreURL(t *testing.T) {
	t.Parallel()
	for in, out := range map[string]string{
		"":                              "memory",
		"memory":                        "memory",
		"redis://cache":                 "redis://cache:6379",
		"redis://127.0.0.1:7000/3":      "redis://127.0.0.1:7000/3",
		"redis://[::1]":                 "redis://[::1]:6379",
		"redis://u:p%40s@h:1":           "redis://u:***@h:1",
		"redis://:se@cr/et@h:1/2":       "redis://:***@h:1/2",
		"redis://:a?b@h:1":              "redis://:***@h:1",
		"rediss://u@h":                  "rediss://u@h:6379",
		"redis+cluster://u:pw@a:1,b:2":  "redis+cluster://u:***@a:1,b:2",
		"redis+sentinel://a,b:1/main":   "redis+sentinel://a:26379,b:1/main",
		"rediss+sentinel://:x@a/main/4": "rediss+sentinel://:***@a:26379/main/4",
		"redis+sentinel://a/main?sentinel_password=hunter2": "redis+sentinel://a:26379/main",
	} {
		u, err := ParseStoreURL(in)
		if err != nil {
			t.Errorf("%s: %v", in, err)
		} else if u.String() != out {
			t.Errorf("%s: got %s, want %s", in, u, out)
		}
	}
}

func TestStoreURLRefuses(t *testing.T) {
	t.Parallel()
	for _, in := range []string{
		"postgres://u:hunter2@h", "hunter2", "u:hunter2@h://x", "redis://u:hunter2@", "redis://u:hunter2%zz@h",
		"redis://u:hunter2@h:99999", "redis://:hunter2@a:1,b:2", "redis://:hunter2@h/x", "redis+cluster://:hunter2@a:1,",
		"redis+sentinel://:hunter2@a:1", "redis://:hunter2@h?tls=1", "redis://:hunter2@h?ca=x", "rediss://:hunter2@h?%zz",
		"redis://user:hunter2", "redis://:hunter2?hunter2",
	} {
		_, err := ParseStoreURL(in)
		if err == nil {
			t.Errorf("%s: no error", in)
		} else if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: the error shows the password: %v", in, err)
		}
	}
}

func FuzzParseStoreURL(f *testing.F) {
	f.Add("redis://u:p@h:1/2")
	f.Add("redis+cluster://a,b,c")
	f.Fuzz(func(t *testing.T, in string) {
		u, err := ParseStoreURL(in)
		if err != nil {
			return
		}
		again, err := ParseStoreURL(u.String())
		if err != nil {
			t.Fatalf("%q became %q, which does not parse: %v", in, u, err)
		}
		if again.String() != u.String() {
			t.Fatalf("%q became %q, and that %q", in, u, again)
		}
	})
}
