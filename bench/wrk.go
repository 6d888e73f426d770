package main

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"
)

func replaceUpstream(conf, addr string) string { return strings.Replace(conf, "UPSTREAM", addr, 1) }

// load measures an address on one connection and then on 64, for half of the time each.
func load(wrk, url string) func(d time.Duration) ([]float64, error) {
	return func(d time.Duration) ([]float64, error) {
		one, err := runWrk(wrk, url, 1, d/2)
		if err != nil {
			return nil, err
		}
		many, err := runWrk(wrk, url, 64, d/2)
		return []float64{one.p50, one.p99, many.perSecond, many.p99}, err
	}
}

// wrkResult has times in µs.
type wrkResult struct{ perSecond, p50, p99 float64 }

func runWrk(wrk, url string, connections int, d time.Duration) (wrkResult, error) {
	ctx, cancel := context.WithTimeout(context.Background(), d+30*time.Second)
	defer cancel()
	seconds := max(1, int(d.Round(time.Second)/time.Second)) // wrk knows whole seconds only
	out, err := exec.CommandContext(ctx, wrk, "--latency", "-t1", "-c"+strconv.Itoa(connections), fmt.Sprintf("-d%ds", seconds), url).CombinedOutput()
	if err != nil {
		return wrkResult{}, fmt.Errorf("wrk: %w\n%s", err, out)
	}
	return parseWrk(string(out))
}

var (
	wrkLatency = regexp.MustCompile(`(?m)^\s+(50|99)%\s+([\d.]+)(us|ms|s)$`)
	wrkRate    = regexp.MustCompile(`(?m)^Requests/sec:\s+([\d.]+)$`)
	wrkErrors  = regexp.MustCompile(`(?m)^\s*(Non-2xx or 3xx responses: \d+|Socket errors: .*)$`)
)

func parseWrk(out string) (r wrkResult, err error) {
	if bad := wrkErrors.FindString(out); bad != "" {
		return r, fmt.Errorf("wrk: not every request was answered well: %s", strings.TrimSpace(bad))
	}
	rate := wrkRate.FindStringSubmatch(out)
	latencies := wrkLatency.FindAllStringSubmatch(out, -1)
	if rate == nil || len(latencies) != 2 {
		return r, fmt.Errorf("wrk: cannot read its answer:\n%s", out)
	}
	unit := map[string]float64{"us": 1, "ms": 1e3, "s": 1e6}
	r.perSecond, err = strconv.ParseFloat(rate[1], 64)
	for _, l := range latencies {
		v, failed := strconv.ParseFloat(l[2], 64)
		if failed != nil {
			err = failed
		}
		if v *= unit[l[3]]; l[1] == "50" {
			r.p50 = v
		} else {
			r.p99 = v
		}
	}
	return r, err
}
