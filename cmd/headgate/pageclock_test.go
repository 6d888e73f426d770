package main

import (
	"strings"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale/saleadmin"
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
		clockIn("Europe/Berlin").offset(at, at.Add(90*24*time.Hour)):  "Europe/Berlin (+01:00)",
		clockIn("Europe/Berlin").offset(at, at.Add(-30*24*time.Hour)): "Europe/Berlin",
		clockIn("Moon/Base").named(at):                                "2026-11-11 15:30:00 UTC",
	} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// TestOffsetOfAllThatIsShown: what is told over a change of clocks has no one offset to name.
func TestOffsetOfAllThatIsShown(t *testing.T) {
	t.Parallel()
	winter := time.Date(2026, 11, 11, 15, 30, 0, 0, time.UTC)
	summer := winter.AddDate(0, -2, 0)
	for first, want := range map[time.Time]string{winter: "times of Europe/Berlin (+01:00)\n", summer: "times of Europe/Berlin\n"} {
		for what, show := range map[string]func(p page){
			"an operation": func(p page) {
				p.sale(&saleadmin.Sale{Zone: "Europe/Berlin", OpensAt: winter, ClosesAt: winter, Operations: []saleadmin.Operation{{CreatedAt: first}}})
			},
			"an alarm": func(p page) {
				p.sale(&saleadmin.Sale{Zone: "Europe/Berlin", OpensAt: winter, ClosesAt: winter, Alarms: []saleadmin.Alarm{{Since: first}}})
			},
			"a refusal": func(p page) {
				p.story(&saleadmin.Story{Zone: "Europe/Berlin", Refusals: saleadmin.Refusals{Since: winter, Of: []saleadmin.Refusal{{First: first, Last: winter}}}})
			},
			"a payment": func(p page) {
				p.story(&saleadmin.Story{Zone: "Europe/Berlin", Refusals: saleadmin.Refusals{Since: winter},
					Reservations: []saleadmin.Reservation{{CreatedAt: winter, Payments: []saleadmin.Payment{{ChangedAt: first}}}}})
			},
			"a dead letter": func(p page) {
				p.dead(&saleadmin.DeadLetters{Zone: "Europe/Berlin", DeadLetters: []saleadmin.DeadLetter{{DiedAt: first, Deadline: winter}}})
			},
		} {
			var out strings.Builder
			if show(pageOn(&out, &out)); !strings.Contains(out.String(), want) {
				t.Errorf("%s of %s: no %q in\n%s", what, first, want, out.String())
			}
		}
	}
}
