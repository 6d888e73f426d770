package headgate

import (
	"errors"
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
	if count, _, ok := strings.Cut(amount, "/"); ok {
		return nil, p.fail("concurrency has no period; write concurrency %s ttl=60s", count)
	}
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
	if near := calendarPeriod(periodText); near != "" && p.alg != AlgFixedWindow {
		return "", 0, p.fail("%s is a calendar unit, which only fixed_window has; nearest is %s/%s", periodText, count, near)
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
