package redisstore

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestParseURL(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Config{
		"redis://127.0.0.1":                 {Addrs: []string{"127.0.0.1:6379"}},
		"redis://[::1]:7000/3":              {Addrs: []string{"[::1]:7000"}, DB: 3},
		"redis://[::1]":                     {Addrs: []string{"[::1]:6379"}},
		"redis://u:p%40ss@h:1":              {Addrs: []string{"h:1"}, Username: "u", Password: "p@ss"},
		"redis://:p@h":                      {Addrs: []string{"h:6379"}, Password: "p"},
		"redis://:p@ss/w?rd@h":              {Addrs: []string{"h:6379"}, Password: "p@ss/w?rd"},
		"redis+sentinel://a,b:2,c/mymaster": {Addrs: []string{"a:26379", "b:2", "c:26379"}, Master: "mymaster"},
		"redis+sentinel://a/m/2?sentinel_user=s&sentinel_password=q": {Addrs: []string{"a:26379"}, Master: "m", DB: 2, SentinelUsername: "s", SentinelPassword: "q"},
		"redis+cluster://a,b": {Addrs: []string{"a:6379", "b:6379"}, Cluster: true},
		"redis://h?namespace=shop&timeout=1s&connect_timeout=3s": {Addrs: []string{"h:6379"}, Namespace: "shop", Timeout: time.Second, ConnectTimeout: 3 * time.Second},
	} {
		got, err := ParseURL(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if g, w := show(got), show(want); g != w {
			t.Errorf("%s:\n got %s\nwant %s", text, g, w)
		}
	}
	if cfg, err := ParseURL("rediss+cluster://h?server_name=x"); err != nil || cfg.TLS == nil || cfg.TLS.ServerName != "x" || !cfg.Cluster {
		t.Errorf("%+v, %v", cfg, err)
	}
}

func show(c Config) string {
	return strings.Join([]string{strings.Join(c.Addrs, ","), c.Master, c.Username, c.Password, c.SentinelUsername, c.SentinelPassword,
		c.Namespace, c.Timeout.String(), c.ConnectTimeout.String(), string(rune('0' + c.DB)), map[bool]string{true: "cluster"}[c.Cluster]}, "|")
}

// TestBadURLs: each is refused with a word that says where it is wrong, and without the password.
func TestBadURLs(t *testing.T) {
	t.Parallel()
	for text, word := range map[string]string{
		"":                                   "begin",
		"localhost":                          "begin",
		"http://h":                           "begin",
		"redis://":                           "host",
		"redis://:hunter2@":                  "host",
		"redis://u:hunter2@a,b":              "one host",
		"redis://u:hunter2@h:x":              "host",
		"redis://u:hunter2@h:0":              "host",
		"redis://u:hunter2%zz@h":             "%25",
		"redis://u:hunter2@h/one":            "database",
		"redis://u:hunter2@h/-1":             "database",
		"redis+sentinel://u:hunter2@h":       "primary",
		"redis://u:hunter2@h?tmeout=1s":      "tmeout",
		"redis://u:hunter2@h?timeout=1":      "duration",
		"redis://u:hunter2@h?timeout=-1s":    "duration",
		"redis://u:hunter2@h?ca=x":           "rediss",
		"rediss://u:hunter2@h?ca=/nowhere/x": "ca",
		"rediss://u:hunter2@h?cert=x":        "need each other",
		"redis://u:hunter2@h?%zz":            "options",
		"redis+sentinel://h/m?sentinel_user=s&sentinel_password=p@hunter2:x": "%40",
		"redis://u:p@h?namespace=shop&sentinel_password=a@hunter2":           "%40",
	} {
		_, err := ParseURL(text)
		switch {
		case !errors.Is(err, ErrConfig):
			t.Errorf("%s: %v", text, err)
		case !strings.Contains(err.Error(), word):
			t.Errorf("%s: %q does not say %q", text, err, word)
		case strings.Contains(err.Error(), "hunter2"):
			t.Errorf("%s: the password is in %q", text, err)
		}
	}
}

func TestBadConfigs(t *testing.T) {
	t.Parallel()
	for word, cfg := range map[string]Config{
		"namespace":       {Namespace: "a{b}"},
		"timeout":         {Timeout: -1},
		"connect timeout": {ConnectTimeout: 1},
		"batch":           {MaxBatch: 65},
		"in flight":       {MaxInFlight: -1},
		"queue":           {MaxQueue: -1},
		"choose one":      {Cluster: true, Master: "m"},
		"database":        {Cluster: true, DB: 1},
	} {
		if _, err := New(t.Context(), cfg); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), word) {
			t.Errorf("%s: %v", word, err)
		}
	}
}
