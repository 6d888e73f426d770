package headgate

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"time"
)

// maxLimitText bounds the text of a limit expression; the longest valid one is far below.
const maxLimitText = 256

// ParseLimit reads a limit expression, the one text form of a limit in policies, flags, tests and errors:
//
//	token_bucket   100/s burst=200
//	fixed_window   1000/1m
//	fixed_window   20000/day zone=Asia/Shanghai
//	sliding_log    5/5m
//	sliding_window 600/1m cells=6
//	leaky_bucket   10/s capacity=20 max_wait=2s
//	concurrency    50 ttl=60s
//
// "gcra" is a synonym of token_bucket. A period is a Go duration, s, m, h or d for one of it, or a number of days such as
// 7d. The error is an [*Error] of code [CodeInvalidLimit] that names the part at fault and the nearest valid text.
func ParseLimit(text string) (Limit, error) {
	if len(text) > maxLimitText {
		return nil, newError(CodeInvalidLimit, "a limit of %d bytes is too long; %d are allowed", len(text), maxLimitText)
	}
	words := strings.Fields(text)
	if len(words) == 0 {
		return nil, newError(CodeInvalidLimit, "the limit is empty; write one such as token_bucket 100/s burst=200")
	}
	p := parser{text: strings.Join(words, " ")}
	var ok bool
	if p.alg, ok = algorithmByName(words[0]); !ok {
		return nil, p.fail("algorithm %q is unknown; nearest is %s", words[0], nearest(words[0], append(algorithmNames[1:], "gcra")))
	}
	if len(words) < 2 {
		return nil, p.fail("the count is missing; write %s", exampleOf(p.alg))
	}
	if err := p.readOptions(words[2:]); err != nil {
		return nil, err
	}
	limit, err := p.build(words[1])
	if err != nil {
		return nil, p.locate(err)
	}
	return limit, nil
}

// MustParseLimit is ParseLimit for limits written in the program; it panics if the text is not a limit.
func MustParseLimit(text string) Limit {
	l, err := ParseLimit(text)
	if err != nil {
		panic(err)
	}
	return l
}

// parser holds what is known of one expression while it is read.
type parser struct {
	text    string
	alg     Algorithm
	options [4]string // values by the position of the option in optionsOf
	given   [4]bool
}

func optionsOf(a Algorithm) []string {
	switch a {
	case AlgTokenBucket:
		return []string{"burst"}
	case AlgFixedWindow:
		return []string{"zone"}
	case AlgSlidingWindow:
		return []string{"cells"}
	case AlgLeakyBucket:
		return []string{"capacity", "max_wait"}
	case AlgConcurrency:
		return []string{"ttl"}
	}
	return nil
}

func exampleOf(a Algorithm) string {
	switch a {
	case AlgTokenBucket:
		return "token_bucket 100/s burst=200"
	case AlgFixedWindow:
		return "fixed_window 1000/1m"
	case AlgSlidingLog:
		return "sliding_log 5/5m"
	case AlgSlidingWindow:
		return "sliding_window 600/1m cells=6"
	case AlgLeakyBucket:
		return "leaky_bucket 10/s capacity=20"
	}
	return "concurrency 50 ttl=60s"
}

func algorithmByName(name string) (Algorithm, bool) {
	if name == "gcra" {
		return AlgTokenBucket, true
	}
	for i, n := range algorithmNames {
		if i > 0 && n == name {
			return Algorithm(i), true
		}
	}
	return 0, false
}

func (p *parser) readOptions(words []string) error {
	known := optionsOf(p.alg)
	for _, word := range words {
		name, value, ok := strings.Cut(word, "=")
		at := -1
		for i, k := range known {
			if k == name {
				at = i
			}
		}
		switch {
		case at < 0 && len(known) == 0:
			return p.fail("option %q is unknown: %s takes no options", name, p.alg)
		case at < 0:
			return p.fail("option %q is unknown; nearest is %s=", name, nearest(name, known))
		case !ok || value == "":
			return p.fail("option %s has no value; write %s=VALUE", name, name)
		case p.given[at]:
			return p.fail("option %s is given twice; keep one", name)
		}
		p.options[at], p.given[at] = value, true
	}
	return nil
}

func (p *parser) build(amount string) (Limit, error) {
	switch p.alg {
	case AlgTokenBucket:
		return p.tokenBucket(amount)
	case AlgLeakyBucket:
		return p.leakyBucket(amount)
	case AlgFixedWindow:
		return p.fixedWindow(amount)
	case AlgConcurrency:
		return p.concurrency(amount)
	}
	count, period, err := p.window(amount)
	if err != nil {
		return nil, err
	}
	if p.alg == AlgSlidingLog {
		return orNil(NewSlidingLog(count, period))
	}
	cells, err := p.whole("cells", 0, 1)
	if err != nil {
		return nil, err
	}
	return orNil(NewSlidingWindow(count, period, cells))
}

// orNil keeps a refused limit from travelling as a non-nil interface.
func orNil[L Limit](l L, err error) (Limit, error) {
	if err != nil {
		return nil, err
	}
	return l, nil
}

func (p *parser) tokenBucket(amount string) (Limit, error) {
	rate, err := p.rate(amount)
	if err != nil {
		return nil, err
	}
	burst, err := p.whole("burst", 0, defaultBurst(rate))
	if err != nil {
		return nil, err
	}
	return orNil(NewTokenBucket(rate, burst))
}

func (p *parser) leakyBucket(amount string) (Limit, error) {
	rate, err := p.rate(amount)
	if err != nil {
		return nil, err
	}
	var bounds []LeakyOption
	if p.given[0] {
		capacity, err := p.whole("capacity", 0, 1)
		if err != nil {
			return nil, err
		}
		bounds = append(bounds, Capacity(capacity))
	}
	if p.given[1] {
		wait, err := parsePeriod(p.options[1])
		if err != nil {
			return nil, p.fail("max_wait: %v", err)
		}
		bounds = append(bounds, MaxWait(wait))
	}
	return orNil(NewLeakyBucket(rate, bounds...))
}

func (p *parser) fixedWindow(amount string) (Limit, error) {
	_, word, _ := strings.Cut(amount, "/")
	for u, name := range calendarNames {
		if u == 0 || name != word {
			continue
		}
		count, err := p.count(strings.TrimSuffix(amount, "/"+word))
		if err != nil {
			return nil, err
		}
		return orNil(NewCalendarWindow(count, CalendarUnit(u), p.options[0]))
	}
	count, period, err := p.window(amount)
	if err != nil {
		return nil, err
	}
	if p.given[0] {
		return nil, p.fail("zone= needs a calendar unit: write %d/day zone=%s, or leave the zone out", count, p.options[0])
	}
	return orNil(NewFixedWindow(count, period))
}

func (p *parser) concurrency(amount string) (Limit, error) {
	count, err := p.count(amount)
	if err != nil {
		return nil, err
	}
	if !p.given[0] {
		return nil, p.fail("ttl is missing; write concurrency %d ttl=60s", count)
	}
	ttl, err := parsePeriod(p.options[0])
	if err != nil {
		return nil, p.fail("ttl: %v", err)
	}
	return orNil(NewConcurrency(count, ttl))
}

// rate reads COUNT/PERIOD with a count that may have a fraction.
func (p *parser) rate(amount string) (Rate, error) {
	countText, period, err := p.split(amount)
	if err != nil {
		return Rate{}, err
	}
	num, den, err := parseDecimal(countText)
	if err != nil {
		return Rate{}, p.fail("count %q: %v", countText, err)
	}
	return PerFraction(num, den, period), nil
}

// window reads COUNT/PERIOD with a whole count.
func (p *parser) window(amount string) (int64, time.Duration, error) {
	countText, period, err := p.split(amount)
	if err != nil {
		return 0, 0, err
	}
	count, err := p.count(countText)
	return count, period, err
}

func (p *parser) split(amount string) (string, time.Duration, error) {
	count, periodText, ok := strings.Cut(amount, "/")
	if !ok || periodText == "" {
		return "", 0, p.fail("the period is missing in %q; write COUNT/PERIOD as in %s", amount, exampleOf(p.alg))
	}
	period, err := parsePeriod(periodText)
	if err != nil {
		return "", 0, p.fail("period: %v", err)
	}
	return count, period, nil
}

func (p *parser) count(text string) (int64, error) {
	n, err := parseWhole(text)
	if err != nil {
		return 0, p.fail("count %q: %v", text, err)
	}
	return n, nil
}

// whole reads an option that is a whole number of at least least; missing, it is absent.
func (p *parser) whole(option string, absent, least int64) (int64, error) {
	for i, name := range optionsOf(p.alg) {
		if name != option || !p.given[i] {
			continue
		}
		n, err := parseWhole(p.options[i])
		if err != nil {
			return 0, p.fail("%s=%s: %v", option, p.options[i], err)
		}
		if n < 1 {
			return 0, p.fail("%s=%d is below 1; nearest is %s=%d", option, n, option, least)
		}
		return n, nil
	}
	return absent, nil
}

func (p *parser) fail(format string, args ...any) error {
	return p.locate(newError(CodeInvalidLimit, format, args...))
}

// locate puts the whole expression in front of what is wrong with it, once.
func (p *parser) locate(err error) error {
	var e *Error
	if !errors.As(err, &e) {
		return err
	}
	prefix := "limit " + strconv.Quote(p.text) + ": "
	if strings.HasPrefix(e.Message, prefix) {
		return e
	}
	return &Error{Code: CodeInvalidLimit, Charge: -1, Message: prefix + strings.TrimPrefix(e.Message, p.alg.String()+": ")}
}

// parseWhole reads a whole decimal number of plain digits. A number too large for int64 is cut to the largest one, which
// every bound refuses with its own words.
func parseWhole(text string) (int64, error) {
	digits := strings.TrimPrefix(text, "-")
	if digits == "" || strings.Trim(digits, "0123456789") != "" {
		if _, err := strconv.ParseFloat(text, 64); err == nil {
			return 0, errors.New("is not a whole number in plain digits")
		}
		return 0, errors.New("is not a number")
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		if digits != text {
			return math.MinInt64, nil
		}
		return math.MaxInt64, nil
	}
	return n, nil
}

// parseDecimal reads digits with an optional fraction as an exact fraction.
func parseDecimal(text string) (num, den int64, err error) {
	whole, fraction, dotted := strings.Cut(text, ".")
	if !dotted {
		num, err = parseWhole(text)
		return num, 1, err
	}
	fraction = strings.TrimRight(fraction, "0")
	if strings.HasPrefix(whole, "-") || strings.Trim(whole+fraction, "0123456789") != "" || whole == "" || strings.HasSuffix(text, ".") {
		return 0, 0, errors.New("is not a number of digits such as 10 or 0.2")
	}
	if len(fraction) > 18 {
		return 0, 0, errors.New("has more than 18 decimal places; round it")
	}
	for den = 1; len(fraction) > 0 && den < pow10(len(fraction)); {
		den *= 10
	}
	num, err = strconv.ParseInt(strings.TrimLeft(whole+fraction, "0")+"", 10, 64)
	if strings.TrimLeft(whole+fraction, "0") == "" {
		return 0, 1, nil
	}
	if err != nil {
		return 0, 0, errors.New("has too many digits; keep 15")
	}
	return num, den, nil
}

func pow10(n int) int64 {
	p := int64(1)
	for range n {
		p *= 10
	}
	return p
}

// parsePeriod reads a Go duration, a bare unit (s, m, h, d), or a number of days (7d).
func parsePeriod(text string) (time.Duration, error) {
	switch text {
	case "ms", "us", "µs":
		text = "1" + text
	case "s", "m", "h", "d":
		text = "1" + text
	}
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := parseWhole(days)
		if err != nil {
			return 0, newError(CodeInvalidLimit, "%q is not a number of days such as 7d", text)
		}
		if n < 0 || n > int64(MaxPeriod/(24*time.Hour)) {
			return 0, newError(CodeInvalidLimit, "%s is outside 1us to 36500d; nearest is %s", text, map[bool]string{true: "1us", false: "36500d"}[n < 0])
		}
		return time.Duration(n) * 24 * time.Hour, nil
	}
	d, err := time.ParseDuration(text)
	switch {
	case err == nil:
		return d, nil
	case strings.Trim(text, "0123456789") == "" && text != "":
		return 0, newError(CodeInvalidLimit, "%q has no unit; nearest is %ss", text, text)
	case wordy(text):
		return 0, newError(CodeInvalidLimit, "%q is not a period; nearest is %s", text, nearest(text, []string{"s", "m", "h", "d", "hour", "day", "week", "month"}))
	}
	return 0, newError(CodeInvalidLimit, "%q is not a period such as 1m, 1h30m or 7d", text)
}

func wordy(text string) bool {
	return text != "" && strings.Trim(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
}

// nearest returns the candidate with the fewest edits to word.
func nearest(word string, candidates []string) string {
	best, bestDistance := "", math.MaxInt
	for _, c := range candidates {
		if d := editDistance(word, c); d < bestDistance {
			best, bestDistance = c, d
		}
	}
	return best
}

func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := diagonal
			if a[i-1] != b[j-1] {
				cost++
			}
			diagonal = row[j]
			row[j] = min(cost, row[j]+1, row[j-1]+1)
		}
	}
	return row[len(b)]
}
