package schedule

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/headgate-io/headgate/policy/internal/spelling"
)

// loadZone returns a zone of the IANA database; "" is UTC.
func loadZone(name string) (*time.Location, error) {
	if name == "" {
		return time.UTC, nil
	}
	if name == "Local" {
		return nil, errors.New("zone Local means another zone on every machine; name one such as Europe/Berlin")
	}
	if len(name) <= maxText {
		if loc, err := time.LoadLocation(name); err == nil {
			return loc, nil
		}
	}
	if strings.ContainsAny(name, "+0123456789") || strings.Trim(name, " ") == "" {
		return nil, fmt.Errorf("zone %q is not in the time zone database; write a name such as UTC or Asia/Shanghai", clip(name))
	}
	return nil, fmt.Errorf("zone %q is not in the time zone database; nearest is %s", clip(name), nearestZone(clip(name)))
}

// nearestZone returns the known name with the fewest edits to a word, which may be the name of the city alone.
func nearestZone(word string) string {
	word = strings.ReplaceAll(strings.ToLower(word), " ", "_")
	if city := word[strings.LastIndexByte(word, '/')+1:]; city == "beijing" || city == "peking" {
		return "Asia/Shanghai" // the database names zones for the largest city
	}
	best, least := "UTC", len(word)+1
	for name := range strings.FieldsSeq(zoneNames) {
		lower := strings.ToLower(name)
		candidate := lower
		if !strings.Contains(word, "/") {
			candidate = lower[strings.LastIndexByte(lower, '/')+1:]
		}
		if d := spelling.Distance(word, candidate); d < least {
			best, least = name, d
		}
	}
	return best
}
