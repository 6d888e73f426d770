package faults

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/engine"
)

// call is what an instance is asked by shoppers, by the provider, and by the test.
type call struct {
	Key      flashsale.Key
	User     string
	Token    string
	RID      string
	Quantity int64
	Sale     *flashsale.Sale
	Command  engine.Command
	Units    int64
	Header   http.Header
	Body     []byte
	Crash    *crashPlan
}

// reply is what it answers. A Code tells of an error.
type reply struct {
	Code       flashsale.Code
	Text       string
	RetryAfter time.Duration
	Token      string
	Result     engine.Result
	Intent     string
	Underway   string
	Report     *engine.AuditReport
	// Passes counts the passes of each job, Alarms the alarms that went on, by kind.
	Passes, Alarms map[string]int64
}

// err is the error of an answer, nil if it is none.
func (r *reply) err() error {
	if r.Code == "" {
		return nil
	}
	return &flashsale.Error{Code: r.Code, Message: r.Text}
}

// again reports whether the same call may do better later.
func (r *reply) again() bool {
	switch r.Code {
	case flashsale.CodeUnavailable, flashsale.CodeBusy, flashsale.CodeRebuilding:
		return true
	}
	return false
}

// post sends v and reads the answer into answer.
func post(ctx context.Context, client *http.Client, url string, v, answer any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", url, res.Status)
	}
	return json.Unmarshal(text, answer)
}

// serve answers calls by the last element of the path.
func serve[C, R any](w http.ResponseWriter, r *http.Request, answer func(ctx context.Context, what string, c *C) (*R, error)) {
	var c C
	if err := json.NewDecoder(r.Body).Decode(&c); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	a, err := answer(r.Context(), strings.TrimPrefix(r.URL.Path, "/"), &c)
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	_ = json.NewEncoder(w).Encode(a) // whoever has asked may be gone
}

// codeOf is the code of any error: one that has none is a fault of the product.
func codeOf(err error) flashsale.Code {
	if code := flashsale.CodeOf(err); code != "" || err == nil {
		return code
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return flashsale.CodeUnavailable
	}
	return flashsale.CodeInternal
}

func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
