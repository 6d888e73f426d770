package sqlorders

import (
	"context"
	"slices"
	"strings"

	"github.com/headgate-io/headgate/flashsale"
)

// durableSetting is a setting of a database without which a crash can lose what it has committed.
type durableSetting struct {
	name string
	// query returns its value.
	query string
	// good are the values that will do, the best one first; bad, without good, those that will not.
	good, bad []string
}

// Durable implements [flashsale.Orders]. The error's code is CodeInvalidState, and its message says what to set. Of sqlite::memory: it
// says nothing: there is no crash that its commits could outlive, and its URL says so.
func (o *Orders) Durable(ctx context.Context) error {
	if o.single {
		return nil
	}
	var wrong []string
	err := o.checkDurable(ctx, &wrong)
	if err != nil {
		return err
	}
	if len(wrong) > 0 {
		return errorf(flashsale.CodeInvalidState, "%s at %s may lose commits in a crash: %s", o.d.name, o.d.where, strings.Join(wrong, "; "))
	}
	return nil
}

func (o *Orders) checkDurable(ctx context.Context, wrong *[]string) error {
	return o.write(ctx, "Durable", func(t *tx) error { // on a connection that writes: SQLite's settings are the connection's
		*wrong = nil
		for _, s := range o.d.durable {
			var value string
			if _, err := t.one(s.query, nil, &value); err != nil {
				return err
			}
			if !s.allows(strings.ToLower(value)) {
				*wrong = append(*wrong, s.name+" is "+value+s.advice())
			}
		}
		return nil
	})
}

func (s *durableSetting) allows(value string) bool {
	if len(s.good) == 0 {
		return !slices.Contains(s.bad, value)
	}
	return slices.Contains(s.good, value)
}

func (s *durableSetting) advice() string {
	if len(s.good) == 0 {
		return ""
	}
	return ", set it to " + s.good[0]
}
