package replay

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"testing"
	"time"
)

var generate = flag.String("generate", "", "write a log of a million lines to this file")

// TestGenerate writes the log that the documented figures were measured with: go test ./replay -run Generate -generate FILE
func TestGenerate(t *testing.T) {
	if *generate == "" {
		t.Skip("there is no -generate")
	}
	f, err := os.Create(*generate)
	if err != nil {
		t.Fatal(err)
	}
	if err := writeLog(f, 1, 1_000_000); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// writeLog writes a combined log of a day of a shop: shoppers whose number follows the hour, a crawler, a farm of bots that
// tries passwords in the evening, and a rush of a minute. One seed gives one log.
func writeLog(out io.Writer, seed uint64, lines int) error {
	w := bufio.NewWriterSize(out, 1<<16)
	r := rand.New(rand.NewPCG(seed, 1))
	start := time.Date(2026, 11, 10, 0, 0, 0, 0, time.UTC)
	whole := 0.0
	for second := range 86400 {
		whole += crowd(second)
	}
	written, due := 0, 0.0
	for second := range 86400 {
		for due += crowd(second) / whole * float64(lines); float64(written) < due && written < lines; written++ {
			writeLine(w, r, start.Add(time.Duration(second)*time.Second), second)
		}
	}
	for ; written < lines; written++ { // what rounding has left over
		writeLine(w, r, start.Add(24*time.Hour-time.Second), 86399)
	}
	return w.Flush()
}

const (
	rush   = 20 * 3600 // the sale opens
	farmed = 19 * 3600 // the farm comes, for two hours
)

// crowd is how many come in a second, in proportion.
func crowd(second int) float64 {
	n := 1 - 0.75*math.Cos(2*math.Pi*float64(second-5*3600)/86400)
	if since := second - rush; since >= 0 && since < 900 {
		n += 60 * math.Exp(-float64(since)/150)
	}
	if isFarm(second) {
		n += 1.5
	}
	return n
}

func isFarm(second int) bool { return second >= farmed && second < farmed+7200 }

func writeLine(w io.Writer, r *rand.Rand, at time.Time, second int) {
	ip, method, status, agent := shopper(r), "GET", 200, "Mozilla/5.0 (X11; Linux x86_64)"
	var path string
	switch n := r.Float64() * crowd(second); {
	case isFarm(second) && n < 1.5: // the farm
		ip, method, path, status, agent = fmt.Sprintf("203.0.113.%d", r.IntN(60)), "POST", "/login", 401, "python-requests/2.32"
	case r.IntN(100) < 4:
		ip, path, agent = "198.51.100.20", fmt.Sprintf("/product/%d", r.IntN(100_000)), "ExampleBot/1.0 (+https://bot.example/)"
	case r.IntN(100) < 3:
		method, path, status = "POST", "/login", []int{200, 200, 200, 401}[r.IntN(4)]
	case r.IntN(100) < 2:
		method, path = "POST", "/sms"
	case r.IntN(100) < 10:
		path = "/cart"
	case second >= rush && second < rush+900:
		path = "/product/1"
	default:
		path = fmt.Sprintf("/product/%d?ref=%d", r.IntN(2000), r.IntN(9))
	}
	stamp := at.Add(-time.Duration(r.ExpFloat64() * float64(time.Second) / 2)).Format(commonLayout) // answers end in another order than they began
	fmt.Fprintf(w, "%s - - [%s] \"%s %s HTTP/1.1\" %d %d \"-\" \"%s\" %.3f\n", ip, stamp, method, path, status, 200+r.IntN(20_000), agent, r.ExpFloat64()/10)
}

// shopper is one of many addresses, few of which come often.
func shopper(r *rand.Rand) string {
	n := int(r.ExpFloat64() * 8000)
	return fmt.Sprintf("10.%d.%d.%d", n>>16&255, n>>8&255, n&255)
}
