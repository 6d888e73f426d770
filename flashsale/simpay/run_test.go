package simpay

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

// receiver is a merchant who takes a time for each message, and notes in which order they begin.
type receiver struct {
	mu         sync.Mutex
	took       time.Duration
	under      map[string]int
	all, most  int
	overlapped bool
	begun      map[string][]flashsale.PayStatus
}

func (r *receiver) deliver(ctx context.Context, _ http.Header, body []byte) error {
	var m struct {
		Data struct {
			Intent string              `json:"intent"`
			Status flashsale.PayStatus `json:"status"`
		} `json:"data"`
	}
	if err := json.Unmarshal(body, &m); err != nil {
		return err
	}
	r.note(m.Data.Intent, m.Data.Status, 1)
	defer r.note(m.Data.Intent, "", -1)
	wait := time.NewTimer(r.took)
	defer wait.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-wait.C:
		return nil
	}
}

func (r *receiver) note(intent string, status flashsale.PayStatus, by int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.under[intent] += by
	r.all += by
	r.most = max(r.most, r.all)
	r.overlapped = r.overlapped || r.under[intent] > 1
	if status != "" {
		r.begun[intent] = append(r.begun[intent], status)
	}
}

// TestRunSendsInParallel: as many at a time as may be and no more, those of one payment in their order and never two at a time; a slow receiver holds up
// neither what shoppers do nor calls, and none is under way when Run has returned.
func TestRunSendsInParallel(t *testing.T) {
	for _, parallel := range []int{1, 4} {
		t.Run(fmt.Sprint(parallel), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const payments = 12
				r := &receiver{took: time.Second, under: map[string]int{}, begun: map[string][]flashsale.PayStatus{}}
				p := New(Config{Deliver: r.deliver, Parallel: parallel, Behaviour: Behaviour{Twice: 1}})
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() { done <- p.Run(ctx) }()
				for i := range payments {
					in := flashsale.Intent{Key: fmt.Sprint("r:", i), Amount: 500, Currency: "EUR"}
					if _, err := p.Create(t.Context(), &in); err != nil {
						t.Fatal(err)
					}
					if err := p.Pay(in.Key, flashsale.PayCaptured); err != nil {
						t.Fatal(err)
					}
				}
				synctest.Wait()
				r.mu.Lock()
				if r.all != parallel {
					t.Errorf("%d are under way, want %d", r.all, parallel)
				}
				r.mu.Unlock()
				time.Sleep(4 * payments / time.Duration(parallel) * time.Second) // each of two messages is sent twice
				synctest.Wait()
				r.mu.Lock()
				defer r.mu.Unlock()
				if r.most != parallel || r.overlapped || r.all != 0 {
					t.Errorf("at most %d at a time, overlapped %t, %d under way still; want %d", r.most, r.overlapped, r.all, parallel)
				}
				want := []flashsale.PayStatus{open, open, captured, captured}
				for i := range payments {
					if got := r.begun[fmt.Sprint("r:", i)]; !slices.Equal(got, want) {
						t.Errorf("payment %d: %v", i, got)
					}
				}
				if st := p.Stats(); st.Sent != 4*payments || st.Lost != 0 {
					t.Errorf("%+v", st)
				}
				r.took = time.Hour
				if err := p.Capture("r:0", 1, "EUR"); err == nil {
					t.Error("captured twice")
				}
				if _, err := p.Refund(t.Context(), "r:0"); err != nil {
					t.Fatal(err)
				}
				r.mu.Unlock()
				synctest.Wait()
				cancel()
				err := <-done
				r.mu.Lock()
				if err != nil || r.all != 0 {
					t.Errorf("Run has returned %v with %d under way", err, r.all)
				}
			})
		})
	}
}
