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
	body = regexp.MustCompile(`"(cpu|memory)": [0-9.e-]+`).ReplaceAllString(body, `"$1": 0`)
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
    "reached": true,
    "lost": false
  },
  "instances": {
    "live": 1,
    "age_seconds": 0
  },
  "level": {
    "level": 0,
    "switches": [
      {
        "level": 1,
        "name": "store lost",
        "on": false,
        "turns_off": "limits shared by all instances: each admits its own part"
      },
      {
        "level": 2,
        "name": "device layer lifted",
        "on": false,
        "turns_off": "the limits of the device layer; lists, lockouts and the other layers stay"
      },
      {
        "level": 3,
        "name": "restricted",
        "on": false,
        "turns_off": "the service for everybody who is not on the lists of l3"
      }
    ]
  },
  "overload": {
    "active": false,
    "cpu": 0,
    "memory": 0,
    "shedding": {
      "critical": 0,
      "normal": 0,
      "sheddable": 0
    },
    "shed": {
      "critical": 0,
      "normal": 0,
      "sheddable": 0
    }
  },
  "gateway": {
    "listener": {
      "address": "…",
      "tls": false
    },
    "upstreams": [
      {
        "upstream": "http://…",
        "state": "healthy",
        "since": …,
        "in_flight": 0,
        "requests": 0,
        "failures": 0
      }
    ],
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
