package redisstock_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/redisstock"
)

// TestDueLooksFurther: the index of deadlines is cleaned a bit at a time, and yet all that is due is found, once.
func TestDueLooksFurther(t *testing.T) {
	var passed atomic.Int64
	begin := time.Now()
	now := func() time.Time { return begin.Add(time.Duration(passed.Load())) }
	srv := shared.Get(t)
	namespace := newNamespace()
	k := sell(t, open(t, redisstock.Config{Namespace: namespace, Now: now}), 1000, 1)
	var effects []flashsale.Effect
	for i := range 200 { // one by one, so that each is a member of the index
		rid, user := fmt.Sprintf("r%03d", i), fmt.Sprint("u", i)
		k.accept(rid, user, 1)
		if i%4 != 3 && i < 190 {
			effects = append(effects, flashsale.Effect{RID: rid, User: user, Quantity: 1, State: flashsale.Reserved, Version: 1})
		}
		passed.Add(int64(time.Millisecond))
	}
	_, err := k.stock.Apply(t.Context(), k.key, 1, effects, nil)
	k.check(err)
	passed.Add(int64(flashsale.PendingFor))
	for _, limit := range []int{1, 10, 57, 58, 1000} {
		due, err := k.stock.Due(t.Context(), k.key, 1, limit)
		k.check(err)
		if len(due) != min(limit, 57) {
			t.Fatalf("%d are due of a limit of %d, want %d", len(due), limit, min(limit, 57))
		}
		for i := 1; i < len(due); i++ {
			if due[i].RID <= due[i-1].RID || due[i].State != flashsale.Pending {
				t.Fatalf("%+v comes after %+v", due[i], due[i-1])
			}
		}
	}
	if n, err := srv.Do("ZCARD", namespace+":{sale:sku}:1:due"); err != nil || n != int64(57) {
		t.Errorf("the index has %v members, want 57: %v", n, err)
	}
}
