package testlang

import (
	"math"
	"strconv"
	"strings"
	"time"

	headgate "github.com/headgate-io/headgate"
)

// step reads the words after "at".
func (p *fileParser) step(words []word, text string) error {
	if p.current == nil {
		return faultf(1, "nothing to test yet: write a limit or a policy line first")
	}
	if p.steps++; p.steps > MaxSteps {
		return faultf(1, "the file has more than %d lines that run: split it", MaxSteps)
	}
	s := &Step{Line: p.at, Text: text, Start: p.start, Repeat: 1}
	words, err := s.times(words)
	if err != nil {
		return err
	}
	before, after := arrow(words)
	if before, err = s.repeats(before); err != nil {
		return err
	}
	if s.Do, err = p.action(before); err != nil {
		return err
	}
	if s.Want, err = wantOf(s.Do, after); err != nil {
		return err
	}
	if err := p.bound(s); err != nil {
		return err
	}
	p.current.Steps = append(p.current.Steps, s)
	return nil
}

// bound refuses lines that run too often or that run at a time that cannot be.
func (p *fileParser) bound(s *Step) error {
	if _, reload := s.Do.(Reload); reload && s.Runs() > 1 {
		return faultf(1, "reload runs once: leave xN and the range of times out")
	}
	if s.points() > MaxRuns || s.Runs() > MaxRuns {
		return faultf(1, "the line runs more than %d times: shorten it", MaxRuns)
	}
	if p.runs += s.Runs(); p.runs > MaxFileRuns {
		return faultf(1, "the lines of the file run more than %d times in all: split it", MaxFileRuns)
	}
	return nil
}

// times reads A or A..B every D.
func (s *Step) times(words []word) ([]word, error) {
	if len(words) == 0 {
		return nil, faultf(1, "the time is missing: write one, as in at 0s take 1 -> allow")
	}
	from, to, ranged := strings.Cut(words[0].plain, "..")
	var err error
	if s.From, err = offset(words[0].column, from); err != nil {
		return nil, err
	}
	s.To, s.Every = s.From, time.Microsecond
	if !ranged {
		return words[1:], nil
	}
	if s.To, err = offset(words[0].column, to); err != nil {
		return nil, err
	}
	if len(words) < 3 || words[1].raw != "every" {
		return nil, faultf(words[0].column, "a range needs its step: write at %s every 1s", words[0].plain)
	}
	if s.Every, err = offset(words[2].column, words[2].plain); err != nil {
		return nil, err
	}
	switch {
	case s.Every <= 0:
		return nil, faultf(words[2].column, "the step %s is not above zero", words[2].plain)
	case s.To < s.From:
		return nil, faultf(words[0].column, "the range %s runs backwards: write the earlier time first", words[0].plain)
	case s.To-s.From < 0:
		return nil, faultf(words[0].column, "the range %s is too long", words[0].plain)
	}
	return words[3:], nil
}

// offset reads a duration of whole microseconds, negative ones and days (2d) included.
func offset(column int, text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil {
		const day = 24 * time.Hour
		days, ok := strings.CutSuffix(text, "d")
		n, dayErr := strconv.ParseInt(days, 10, 64)
		if !ok || dayErr != nil || n > math.MaxInt64/int64(day) || n < math.MinInt64/int64(day) {
			return 0, faultf(column, "%q is not a duration: write one as in 0s, 1.5s, -500ms, 2h30m or 7d", text)
		}
		d = time.Duration(n) * day
	}
	if d%time.Microsecond != 0 {
		return 0, faultf(column, "%s has a part of a microsecond; time counts whole ones", text)
	}
	return d, nil
}

// arrow splits the words at "->".
func arrow(words []word) (before, after []word) {
	for i := range words {
		if words[i].raw == "->" {
			return words[:i], words[i+1:]
		}
	}
	return words, nil
}

// repeats takes xN off the words.
func (s *Step) repeats(words []word) ([]word, error) {
	if len(words) < 3 {
		return words, nil
	}
	last := words[len(words)-1]
	digits, ok := strings.CutPrefix(last.raw, "x")
	if !ok || digits == "" || strings.Trim(digits, "0123456789") != "" {
		return words, nil
	}
	n, err := strconv.Atoi(digits)
	if err != nil || n < 1 || n > MaxRuns {
		return nil, faultf(last.column, "%s is outside x1 to x%d", last.raw, MaxRuns)
	}
	s.Repeat = n
	return words[:len(words)-1], nil
}

// action reads what a line does.
func (p *fileParser) action(words []word) (Action, error) {
	if len(words) == 0 {
		return nil, faultf(1, "nothing is done: write what, as in at 0s take 1 -> allow")
	}
	verb := words[0]
	if p.current.Policy != nil {
		return countedRequest(words)
	}
	a := arguments{parser: p, words: words[1:]}
	switch verb.raw {
	case "take":
		return a.take()
	case "acquire":
		return a.acquire()
	case "renew", "release":
		return a.slot(verb.raw)
	case "refund":
		return a.refund()
	case "reload":
		return p.reload(words[1:])
	}
	return nil, faultf(verb.column, "%q cannot be done to a limit: write take, acquire, renew, release, refund or reload", verb.raw)
}

func (p *fileParser) reload(words []word) (Action, error) {
	if len(words) == 0 {
		return nil, faultf(1, "write what the limit becomes, as in reload site: token_bucket 20/1m")
	}
	name, rest, err := limitName(words)
	if err != nil {
		return nil, err
	}
	i := 0
	if name != "" {
		if i, err = p.limitNamed(words[0].column, name); err != nil {
			return nil, err
		}
	}
	to, err := limitOf(rest)
	if err != nil {
		return nil, err
	}
	return Reload{i, to}, nil
}

func (p *fileParser) limitNamed(column int, name string) (int, error) {
	if i := p.current.find(name); i >= 0 && name != "" {
		return i, nil
	}
	var names []string
	for _, l := range p.current.Limits {
		if l.Name != "" {
			names = append(names, l.Name)
		}
	}
	if len(names) == 0 {
		return 0, faultf(column, "no limit is named %q in this case: leave on= out, or give the limit a name, as in limit %s: …", name, name)
	}
	return 0, faultf(column, "no limit is named %q in this case: write one of %s", name, strings.Join(names, ", "))
}

// arguments are the words after the verb of a line about limits.
type arguments struct {
	parser *fileParser
	words  []word
}

func (a *arguments) take() (Action, error) {
	cost, err := a.number("take", "1")
	if err != nil {
		return nil, err
	}
	on, err := a.targets()
	return Take{Cost: cost, On: on}, err
}

func (a *arguments) acquire() (Action, error) {
	holder, err := a.holder("acquire")
	if err != nil {
		return nil, err
	}
	on, err := a.targets()
	return Take{Cost: 1, Holder: holder, On: on}, err
}

func (a *arguments) slot(verb string) (Action, error) {
	holder, err := a.holder(verb)
	if err != nil {
		return nil, err
	}
	on, err := a.targets()
	switch {
	case err != nil:
		return nil, err
	case len(on) > 1:
		return nil, faultf(1, "%s is of one limit: name one in on=", verb)
	case verb == "renew":
		return Renew{holder, on[0]}, nil
	}
	return Release{holder, on[0]}, nil
}

func (a *arguments) refund() (Action, error) {
	units, err := a.number("refund", "5")
	if err != nil {
		return nil, err
	}
	if units < 1 {
		return nil, faultf(1, "refund %d gives nothing back: write a number above zero", units)
	}
	on, err := a.targets()
	return Refund{units, on}, err
}

// number takes the whole number off that follows a verb.
func (a *arguments) number(verb, example string) (int64, error) {
	if len(a.words) == 0 {
		return 0, faultf(1, "the number is missing: write %s %s", verb, example)
	}
	w := a.words[0]
	a.words = a.words[1:]
	n, err := strconv.ParseInt(w.plain, 10, 64)
	if err != nil {
		return 0, faultf(w.column, "%q is not a whole number: write %s %s", w.plain, verb, example)
	}
	return n, nil
}

func (a *arguments) holder(verb string) (string, error) {
	if len(a.words) == 0 || a.words[0].equals >= 0 && !a.words[0].quoted {
		return "", faultf(1, "the holder is missing: write one, as in %s A", verb)
	}
	w := a.words[0]
	a.words = a.words[1:]
	return w.plain, nil
}

// targets reads on=, key= and key.NAME=.
func (a *arguments) targets() ([]Target, error) {
	on, shared := []Target{{}}, ""
	keys := map[string]word{}
	for _, w := range a.words {
		name, value, ok := w.option()
		if !ok || name != "on" && name != "key" && !strings.HasPrefix(name, "key.") {
			return nil, faultf(w.column, "%q is not known here: write on=NAME,…, key=K or key.NAME=K, and xN last", w.raw)
		}
		if _, twice := keys[name]; twice {
			return nil, faultf(w.column, "%s= stands twice", name)
		}
		keys[name] = w
		var err error
		switch name {
		case "on":
			on, err = a.limits(w.column, value)
		case "key":
			shared = value
		}
		if err != nil {
			return nil, err
		}
	}
	return a.assign(on, shared, keys)
}

func (a *arguments) limits(column int, list string) ([]Target, error) {
	var on []Target
	for name := range strings.SplitSeq(list, ",") {
		i, err := a.parser.limitNamed(column, name)
		if err != nil {
			return nil, err
		}
		if len(on) == headgate.MaxCharges {
			return nil, faultf(column, "more than %d limits in one take", headgate.MaxCharges)
		}
		on = append(on, Target{Limit: i})
	}
	return on, nil
}

// assign gives each target its key: its own, else the one for all.
func (a *arguments) assign(on []Target, shared string, keys map[string]word) ([]Target, error) {
	own := map[string]string{}
	for option, w := range keys {
		if name, ok := strings.CutPrefix(option, "key."); ok {
			_, own[name], _ = w.option()
		}
	}
	limits := a.parser.current.Limits
	for i := range on {
		on[i].Key = shared
		if key, ok := own[limits[on[i].Limit].Name]; ok {
			on[i].Key = key
		}
	}
	for name := range own {
		w := keys["key."+name]
		i, err := a.parser.limitNamed(w.column, name)
		if err != nil {
			return nil, err
		}
		if !contains(on, i) {
			return nil, faultf(w.column, "key.%s= is for a limit that the line does not name: add it to on=", name)
		}
	}
	return on, nil
}

func contains(on []Target, limit int) bool {
	for _, t := range on {
		if t.Limit == limit {
			return true
		}
	}
	return false
}
