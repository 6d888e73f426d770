package redisstock_test

import (
	"fmt"
	"testing"

	"github.com/headgate-io/headgate/flashsale"
	"github.com/headgate-io/headgate/flashsale/redisstock"
)

// TestRemoveLeavesNoKey: of a sku that is removed there is no key, also where the pointer was lost, or a removal was cut off.
func TestRemoveLeavesNoKey(t *testing.T) {
	srv := shared.Get(t)
	for name, lose := range map[string]func(tag string){
		"as it is":          func(string) {},
		"without a pointer": func(tag string) { must(t, srv, "DEL", tag+"epoch") },
		"without an epoch":  func(tag string) { must(t, srv, "DEL", tag+"1:stock", tag+"3:q") },
	} {
		t.Run(name, func(t *testing.T) {
			namespace := newNamespace()
			k := sell(t, open(t, redisstock.Config{Namespace: namespace}), 10, 1)
			for epoch := int64(1); epoch <= 3; epoch++ {
				if epoch > 1 {
					_, err := k.stock.Point(t.Context(), k.key, epoch)
					k.check(err)
					k.check(k.stock.Load(t.Context(), k.key, epoch, &flashsale.LoadPart{
						Last: true, Total: 10, Reserved: 1, Adjusted: []string{"op"},
						Entries: []flashsale.Entry{{RID: "r", User: "u", Quantity: 1, State: flashsale.Reserved, Version: 1}},
						Buyers:  []flashsale.Buyer{{User: "u", Quantity: 1, RIDs: []string{"r"}}},
					}))
				}
			}
			if keys := keysOf(t, srv, namespace); keys < 8 {
				t.Fatalf("there are only %d keys", keys)
			}
			lose(namespace + ":{sale:sku}:")
			for range 2 {
				k.check(k.stock.Remove(t.Context(), k.key, 3))
				if keys := keysOf(t, srv, namespace); keys != 0 {
					t.Errorf("%d keys are left", keys)
				}
			}
		})
	}
}

// TestRemoveBehind: without a pointer, an epoch that is lower than one with keys removes nothing.
func TestRemoveBehind(t *testing.T) {
	srv := shared.Get(t)
	namespace := newNamespace()
	k := sell(t, open(t, redisstock.Config{Namespace: namespace}), 10, 1)
	_, err := k.stock.Point(t.Context(), k.key, 7)
	k.check(err)
	k.check(k.stock.Load(t.Context(), k.key, 7, &flashsale.LoadPart{Last: true, Total: 10}))
	must(t, srv, "DEL", namespace+":{sale:sku}:epoch")
	before := keysOf(t, srv, namespace)
	failsWith(t, k.stock.Remove(t.Context(), k.key, 6), flashsale.CodeStaleEpoch, "at 7")
	if after := keysOf(t, srv, namespace); after != before {
		t.Errorf("%d keys were there, and %d are", before, after)
	}
}

// doer is what the shared server can be asked for.
type doer interface {
	Do(command ...any) (any, error)
}

func must(t *testing.T, srv doer, command ...any) any {
	t.Helper()
	answer, err := srv.Do(command...)
	if err != nil {
		t.Fatalf("%v: %v", command, err)
	}
	return answer
}

func keysOf(t *testing.T, srv doer, namespace string) int {
	t.Helper()
	keys, ok := must(t, srv, "KEYS", namespace+":*").([]any)
	if !ok {
		t.Fatal(fmt.Sprint("KEYS answers ", keys))
	}
	return len(keys)
}
