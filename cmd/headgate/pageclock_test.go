package main

import (
	"testing"
	"time"
)

// TestClock: times are those of clocks in a zone; one that these show twice says which it is.
func TestClock(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ zone, at, want string }{
		{"Asia/Shanghai", "2026-11-11T11:30:00Z", "2026-11-11 19:30:00"},
		{"UTC", "2026-11-11T11:30:00Z", "2026-11-11 11:30:00"},
		{"", "2026-11-11T11:30:00Z", "2026-11-11 11:30:00"},
		{"Moon/Base", "2026-11-11T11:30:00Z", "2026-11-11 11:30:00"},
		{"Europe/Berlin", "2026-10-24T23:59:59Z", "2026-10-25 01:59:59"},
		{"Europe/Berlin", "2026-10-25T00:00:00Z", "2026-10-25 02:00:00 +02:00"},
		{"Europe/Berlin", "2026-10-25T00:59:59Z", "2026-10-25 02:59:59 +02:00"},
		{"Europe/Berlin", "2026-10-25T01:00:00Z", "2026-10-25 02:00:00 +01:00"},
		{"Europe/Berlin", "2026-10-25T01:59:59Z", "2026-10-25 02:59:59 +01:00"},
		{"Europe/Berlin", "2026-10-25T02:00:00Z", "2026-10-25 03:00:00"},
		{"Europe/Berlin", "2026-03-29T00:59:59Z", "2026-03-29 01:59:59"},
		{"Europe/Berlin", "2026-03-29T01:00:00Z", "2026-03-29 03:00:00"},
		{"Australia/Lord_Howe", "2026-04-04T14:45:00Z", "2026-04-05 01:45:00 +11:00"},
		{"Australia/Lord_Howe", "2026-04-04T15:15:00Z", "2026-04-05 01:45:00 +10:30"},
		{"Australia/Lord_Howe", "2026-04-04T15:30:00Z", "2026-04-05 02:00:00"},
	} {
		at, err := time.Parse(time.RFC3339, c.at)
		if err != nil {
			t.Fatal(err)
		}
		if got := clockIn(c.zone).at(at); got != c.want {
			t.Errorf("%s in %s is %s, want %s", c.at, c.zone, got, c.want)
		}
	}
	at := time.Date(2026, 11, 11, 15, 30, 0, 0, time.UTC)
	c := clockIn("Asia/Shanghai")
	for got, want := range map[string]string{
		c.minute(at):                        "2026-11-11 23:30",
		c.minute(at.Add(time.Second)):       "2026-11-11 23:30:01",
		c.after(at, at.Add(29*time.Minute)): "23:59:00",
		c.after(at, at.Add(30*time.Minute)): "2026-11-12 00:00:00",
		c.named(at):                         "2026-11-11 23:30:00 Asia/Shanghai",
		c.offset(at):                        "Asia/Shanghai (+08:00)",
		clockIn("").offset(at):              "UTC",
		clockIn("Moon/Base").named(at):      "2026-11-11 15:30:00 UTC",
	} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
