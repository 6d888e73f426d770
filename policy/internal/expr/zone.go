package expr

import (
	"fmt"
	"time"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/interpreter"
)

// clockParts has the functions of a timestamp that take a zone.
var clockParts = map[string]func(time.Time) int{
	"getFullYear":  time.Time.Year,
	"getMonth":     func(t time.Time) int { return int(t.Month()) - 1 },
	"getDate":      time.Time.Day,
	"getDayOfYear": func(t time.Time) int { return t.YearDay() - 1 },
	"getDayOfWeek": func(t time.Time) int { return int(t.Weekday()) },
	"getHours":     time.Time.Hour,
	"getMinutes":   time.Time.Minute,
	"getSeconds":   time.Time.Second,
}

// location returns the zone of a name, or of an offset such as +08:00.
func location(name string) (*time.Location, error) {
	if name != "" && (name[0] == '+' || name[0] == '-') {
		t, err := time.Parse("-07:00", name)
		if err != nil {
			return nil, fmt.Errorf("offset %q: %w", name, err)
		}
		_, seconds := t.Zone()
		return time.FixedZone(name, seconds), nil
	}
	if name == "" || name == "Local" {
		return nil, fmt.Errorf("zone %q depends on the machine", name)
	}
	return time.LoadLocation(name)
}

// zoned looks zones up when an expression is planned: the library would read the zone's file for every request.
func zoned(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	call, ok := i.(interpreter.InterpretableCall)
	if !ok || len(call.Args()) != 2 {
		return i, nil
	}
	part, ok := clockParts[call.Function()]
	if !ok {
		return i, nil
	}
	name, ok := call.Args()[1].(interpreter.InterpretableConst)
	if !ok {
		return i, nil
	}
	text, _ := name.Value().(types.String)
	zone, err := location(string(text))
	if err != nil {
		return nil, err
	}
	return interpreter.NewCall(call.ID(), call.Function(), call.OverloadID(), call.Args(), func(args ...ref.Val) ref.Val {
		t, ok := args[0].(types.Timestamp)
		if !ok {
			return types.MaybeNoSuchOverloadErr(args[0])
		}
		return types.Int(part(t.In(zone)))
	}), nil
}
