package app

import (
	"regexp"
	"testing"
)

// TestStatusIsReadable: a person reads the status with curl, and a machine finds what it looks for.
func TestStatusIsReadable(t *testing.T) {
	t.Parallel()
	r, _, _ := serveFile(t, "version: 1\nrules: []\n", ServeConfig{})
	defer r.end(t)
	_, body := get(t, r.admin+"/status", "Authorization", "Bearer s3cret")
	body = regexp.MustCompile(`\d+\.\d+,|127\.0\.0\.1:\d+|"[0-9a-f]{12}"|"[^"]+policy.yaml"|"\d{4}-[^"]+Z"`).ReplaceAllString(body, "…")
	const want = `{
  "process": {
    "version": "",
    "started": …,
    "uptime_seconds": …
    "ready": true,
    "admin": {
      "address": "…",
      "tls": false
    }
  },
  "policy": {
    "name": …,
    "version": …,
    "in_force_since": …,
    "rules": 0,
    "current": true,
    "reloads": 0,
    "refused": 0
  },
  "store": {
    "name": "memory",
    "remote": false,
    "reached": true
  },
  "gateway": {
    "listener": {
      "address": "…",
      "tls": false
    },
    "upstream": "http://…",
    "in_flight": 0,
    "tunnels": 0,
    "held": 0
  }
}
`
	if body != want {
		t.Errorf("got\n%s\nwant\n%s", body, want)
	}
}
