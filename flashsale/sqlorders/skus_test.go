package sqlorders

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/headgate-io/headgate/flashsale"
)

// TestRetire: a sku is listed for its keepers or for its removal, and for neither once it is retired.
func TestRetire(t *testing.T) {
	eachShop(t, func(s *shop) {
		lists := func(keepers, removal string) {
			t.Helper()
			skus, err := s.o.SKUs(s.Context())
			noError(t, "SKUs", err)
			retirable, err := s.o.Retirable(s.Context(), flashsale.Key{}, 10)
			noError(t, "Retirable", err)
			if got, want := names(skus)+" / "+names(retirable), keepers+" / "+removal; got != want {
				t.Fatalf("listed are %q, want %q", got, want)
			}
		}
		retire := func(epoch int64, want flashsale.Code) {
			t.Helper()
			wantCode(t, fmt.Sprint("Retire in epoch ", epoch), s.o.Retire(s.Context(), testKey, epoch), want)
		}
		lists("sku other", "")
		retire(1, flashsale.CodeInvalidState) // it is open
		mustExec(t, s.o, "UPDATE sale_sku SET status = 'closed', changed_at = ? WHERE sku = 'sku'", s.now.Load())
		s.pass(flashsale.Retention - time.Minute)
		lists("sku other", "")
		retire(1, flashsale.CodeInvalidState)
		s.pass(2 * time.Minute)
		lists("other", "sku")
		mustExec(t, s.o, "UPDATE sale_sku SET reserved = 1 WHERE sku = 'sku'")
		lists("sku other", "") // something is held: a payment that waits for its provider
		retire(1, flashsale.CodeInvalidState)
		mustExec(t, s.o, "UPDATE sale_sku SET reserved = 0, rebuilding = 1 WHERE sku = 'sku'")
		lists("other", "")
		retire(1, flashsale.CodeInvalidState)
		mustExec(t, s.o, "UPDATE sale_sku SET rebuilding = 0 WHERE sku = 'sku'")
		retire(2, flashsale.CodeStaleEpoch)
		retire(1, "")
		retire(1, "")
		lists("other", "")
		if sku, err := s.o.SKU(s.Context(), testKey); err != nil || !sku.Retired {
			t.Errorf("it is not retired: %+v, %v", sku, err)
		}
		if sku, err := s.o.SKU(s.Context(), otherKey); err != nil || sku.Retired {
			t.Errorf("the other is retired: %+v, %v", sku, err)
		}
		mustExec(t, s.o, "UPDATE sale_sku SET epoch = 2, changed_at = ? WHERE sku = 'sku'", s.now.Load()) // what a rebuild does
		lists("sku other", "")
		if sku, err := s.o.SKU(s.Context(), testKey); err != nil || sku.Retired {
			t.Errorf("it is retired in its new epoch: %+v, %v", sku, err)
		}
		wantCode(t, "an unknown one", s.o.Retire(s.Context(), flashsale.Key{Sale: "sale", SKU: "none"}, 1), flashsale.CodeUnknownSKU)
	})
}

// TestRetirableInPages: one that cannot be removed hides none of those that come after it.
func TestRetirableInPages(t *testing.T) {
	eachShop(t, func(s *shop) {
		noError(t, "CreateSale", s.o.CreateSale(s.Context(), testSale("later")))
		mustExec(t, s.o, "UPDATE sale_sku SET status = 'closed', rebuilding = 0, changed_at = ?", s.now.Load())
		s.pass(flashsale.Retention + time.Minute)
		var got []string
		for after := (flashsale.Key{}); ; {
			skus, err := s.o.Retirable(s.Context(), after, 1)
			noError(t, "Retirable", err)
			if len(skus) == 0 {
				break
			}
			after = skus[0].Key
			got = append(got, after.String())
		}
		if want := []string{"later/other", "later/sku", "sale/other", "sale/sku"}; !slices.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
	})
}

func names(skus []flashsale.SKUState) (names string) {
	for i := range skus {
		if i > 0 {
			names += " "
		}
		names += skus[i].Key.SKU
	}
	return names
}
