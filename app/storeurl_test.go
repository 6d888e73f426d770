package app

import (
	"strings"
	"testing"
)

func TestParseStoreURL(t *testing.T) {
	for _, c := range []struct{ in, out, user, password string }{
		{in: "", out: "memory"},
		{in: "memory", out: "memory"},
		{in: "redis://cache", out: "redis://cache:6379"},
		{in: "redis://127.0.0.1:7000/3", out: "redis://127.0.0.1:7000/3"},
		{in: "redis://[::1]:7000", out: "redis://[::1]:7000"},
		{in: "redis://[::1]", out: "redis://[::1]:6379"},
		{in: "redis://u:p%40s@h:1", out: "redis://u:***@h:1", user: "u", password: "p@s"},
		{in: "redis://:secret@h:1", out: "redis://:***@h:1", password: "secret"},
		{in: "redis://:se@cr/et@h:1/2", out: "redis://:***@h:1/2", password: "se@cr/et"},
		{in: "redis://:a?b@h:1", out: "redis://:***@h:1", password: "a?b"},
		{in: "rediss://u@h", out: "rediss://u@h:6379", user: "u"},
		{in: "rediss://h?ca=/etc/ca.pem", out: "rediss://h:6379?ca=%2Fetc%2Fca.pem"},
		{in: "redis+cluster://a:1,b:2,c", out: "redis+cluster://a:1,b:2,c:6379"},
		{in: "redis+cluster://u:pw@a:1,b:2", out: "redis+cluster://u:***@a:1,b:2", user: "u", password: "pw"},
		{in: "redis+sentinel://a,b:1/main", out: "redis+sentinel://a:26379,b:1/main"},
		{in: "rediss+sentinel://:x@a/main/4", out: "rediss+sentinel://:***@a:26379/main/4", password: "x"},
	} {
		u, err := ParseStoreURL(c.in)
		if err != nil {
			t.Errorf("%s: %v", c.in, err)
			continue
		}
		if u.String() != c.out || u.Username != c.user || u.Password() != c.password {
			t.Errorf("%s: got %s user %q password %q, want %s user %q password %q", c.in, u, u.Username, u.Password(), c.out, c.user, c.password)
		}
	}
}

func TestParseStoreURLRefuses(t *testing.T) {
	const secret = "hunter2"
	for in, says := range map[string]string{
		"redis://user:hunter2":             `host "user"`,
		"redis://:hunter2?hunter2":         `host ""`,
		"postgres://u:hunter2@h":           `"postgres://" is not a known kind`,
		"hunter2":                          "the text given is not a known kind",
		"u:hunter2@h://x":                  "the text given is not a known kind",
		"redis://u:hunter2@":               "a host is missing",
		"redis://u:hunter2%zz@h":           "no escape",
		"redis://u:hunter2@h:99999":        `the port after the host "h" is no number`,
		"redis://:hunter2@a:1,b:2":         "takes one host",
		"redis://:hunter2@h/x":             `"x" is no number of a database`,
		"redis://:hunter2@h/-1":            "no number",
		"redis+cluster://:hunter2@a:1/2":   "database 0 only",
		"redis+cluster://:hunter2@a:1,":    "a host is missing",
		"redis+sentinel://:hunter2@a:1":    "name of the master is missing",
		"redis://:hunter2@h?tls=1":         `option "tls" is unknown`,
		"redis://:hunter2@h?ca=x":          "rediss:// only",
		"rediss://:hunter2@h?ca=x&ca=y":    "given twice",
		"rediss://:hunter2@h?%zz":          "cannot be read",
		"redis://:hunter2@h:port":          "no number from 1 to 65535",
		"redis+sentinel://:hunter2@a/m/db": "no number",
	} {
		_, err := ParseStoreURL(in)
		switch {
		case err == nil:
			t.Errorf("%s: no error", in)
		case !strings.Contains(err.Error(), says):
			t.Errorf("%s: %q does not say %q", in, err, says)
		case strings.Contains(err.Error(), secret):
			t.Errorf("%s: the error shows the password: %q", in, err)
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
