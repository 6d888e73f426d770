package app

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/headgate-io/headgate/internal/jsonbody"
	"github.com/headgate-io/headgate/resilience"
)

// maxOrder bounds the body of a request to turn a switch.
const maxOrder = 4 << 10

// LevelStatus is the degradation in force.
type LevelStatus struct {
	// Level is the highest that is on, 0 if none is, and Why is what turned it on.
	Level    int                 `json:"level"`
	Why      string              `json:"why,omitempty"`
	Switches []resilience.Switch `json:"switches"`
}

func levelStatus(l *resilience.Levels) LevelStatus {
	s := LevelStatus{Switches: l.Switches()}
	for _, sw := range s.Switches {
		if sw.On {
			s.Level, s.Why = sw.Level, sw.Why
		}
	}
	return s
}

// order is what turns a switch.
type order struct {
	On  *bool  `json:"on"`
	Why string `json:"why"`
}

// levelOf returns the level of a switch that a hand can turn, 0 if there is none of this name.
func levelOf(name string) int {
	switch name {
	case "l2":
		return resilience.LevelDeviceLifted
	case "l3":
		return resilience.LevelRestricted
	}
	return 0
}

// turnLevel turns a switch, and answers with all of them.
func turnLevel(levels *resilience.Levels) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		level := levelOf(r.PathValue("level"))
		if level == 0 {
			answer(w, http.StatusNotFound, "there is no such switch; write l2 or l3")
			return
		}
		body, bad := jsonbody.Read(w, r, maxOrder)
		if bad != nil {
			answer(w, statusOfBody(bad.Kind), "the body did not come whole, or is too long"+orderForm)
			return
		}
		o, problem := readOrder(body)
		if problem != "" {
			answer(w, http.StatusBadRequest, problem)
			return
		}
		if err := levels.Set(r.Context(), resilience.SwitchRequest{Level: level, On: *o.On, Why: o.Why}); err != nil {
			answer(w, http.StatusBadRequest, err.Error())
			return
		}
		show(w, levelStatus(levels))
	}
}

func statusOfBody(kind jsonbody.Kind) int {
	switch kind {
	case jsonbody.TooLarge:
		return http.StatusRequestEntityTooLarge
	case jsonbody.Stalled:
		return http.StatusRequestTimeout
	}
	return http.StatusBadRequest
}

const orderForm = `; write {"on": true, "why": "…"}`

// readOrder says in problem what is wrong with the body.
func readOrder(body []byte) (o order, problem string) {
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(&o); err != nil {
		return o, "the body cannot be read" + orderForm
	}
	_, err := d.Token()
	switch {
	case !errors.Is(err, io.EOF):
		return o, "something follows the object in the body" + orderForm
	case o.On == nil:
		return o, "on is missing" + orderForm
	case *o.On && strings.TrimSpace(o.Why) == "":
		return o, "why is missing: those who see the level on will ask" + orderForm
	}
	return o, ""
}
