package expr

import (
	"fmt"
	"testing"
	"time"
)

// BenchmarkBool is what one condition adds to a decision.
func BenchmarkBool(b *testing.B) {
	in := &cheap{app: "app/2.1", path: "/api/v2/items", tier: "vip"}
	for name, text := range map[string]string{
		"two entries": `request.headers["x-app"] != "internal" && dim.tier == "vip"`,
		"status":      `response.status == 401`,
		"path":        `request.path.startsWith("/api/")`,
		"set":         `dim.tier in ["vip", "gold", "silver"]`,
		"has":         `has(dim.tier)`,
		"pattern":     `request.headers["user-agent"].matches("(?i)(bot|crawl|spider)")`,
		"hour":        `request.time.getHours("Asia/Shanghai") >= 20`,
		"list":        `request.headers["x-roles"].split(",", 16).exists(r, r == "vip")`,
	} {
		e, err := Compile(text, Bool)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := e.Bool(in); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkInt is the cost of a charge.
func BenchmarkInt(b *testing.B) {
	in := &cheap{app: "12999"}
	e, err := Compile(`int(request.headers["x-amount-cents"])`, Int)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := e.Int(in); err != nil {
			b.Fatal(err)
		}
	}
}

// cheap is an input that takes no time of its own.
type cheap struct {
	*fake
	app, path, tier string
}

func (c *cheap) Header(string) string    { return c.app }
func (c *cheap) Path() string            { return c.path }
func (c *cheap) Dimension(string) string { return c.tier }
func (c *cheap) Now() time.Time          { return time.Time{} }
func (c *cheap) Status() int             { return 401 }

// BenchmarkCompile is what a rule with a condition of its own adds to a load.
func BenchmarkCompile(b *testing.B) {
	for i := 0; b.Loop(); i++ {
		if _, err := Compile(fmt.Sprintf(`request.headers["x-app"] != "internal-%d" && dim.tier == "vip"`, i), Bool); err != nil {
			b.Fatal(err)
		}
	}
}
