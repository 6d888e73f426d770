package model

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// source is a change to a file of the product.
type source struct{ file, old, changed string }

// sourceMutants are faults in the product itself, by what they would break.
func sourceMutants() map[string][]source {
	return map[string][]source{
		"buyers are not looked at": {
			{"memstock/reserve.go", "if b.quantity+ask.Quantity > k.settings.PurchaseLimit {", "if false {"},
			{"sqlorders/desk.go", "case d.held[c.user]+c.quantity > d.sku.Settings.PurchaseLimit:", "case false:"},
			{"sqlorders/record.go", "d.sku.Settings.PurchaseLimit", "1_000_000"},
		},
		"an effect is applied whatever its version": {
			{"memstock/apply.go", "case f.Version <= e.version || e.state.Terminal():", "case false:"},
		},
		"an effect that is repeated moves units again": {
			{"memstock/apply.go", "case f.Version <= e.version || e.state.Terminal():\n", "case f.Version <= e.version || e.state.Terminal():\n\t\tif f.State.Class() == flashsale.Free {\n\t\t\tk.available, k.held = k.available+f.Quantity, k.held-f.Quantity\n\t\t}\n"},
		},
		"a known rid is not looked for": {
			{"memstock/reserve.go", "if e := k.entries[ask.RID]; e != nil {", "if e := k.entries[ask.RID]; false {"},
		},
		"a rebuild skips the old queue": {
			{"engine/rebuild.go", "if err := r.drain(ctx, older); err != nil {", "if err := r.stock.Drop(ctx, r.key, r.epoch, older); err != nil {"},
		},
		"no fence and no epoch": {
			{"sqlorders/leases.go", `case !found || current != fence || holder == "":`, "case !found:"},
			{"sqlorders/rebuilds.go", "if sku.Epoch == epoch {", "if true {"},
			{"memstock/stock.go", "if k.pointer != epoch || epoch == 0 {", "if epoch == 0 {"},
		},
		"jobs of another epoch are decided": {
			{"sqlorders/decide.go", "case s.Epoch != b.Epoch:", "case false:"},
			{"sqlorders/decide.go", "case !b.Drain && s.Rebuilding:", "case false:"},
		},
		"rows count as sent whatever the epoch": {
			{"sqlorders/outbox.go", "if lane == flashsale.LaneStock {\n\t\t\t\tif part", "if false {\n\t\t\t\tif part"},
		},
		"T3b expires in time": {
			{"sqlorders/settle.go", "if f.late {", "if true {"},
		},
		"T3 begins when it is late": {
			{"sqlorders/payments.go", "case !now.Before(r.Until):", "case false:"},
		},
		"T6 does not look at the time": {
			{"sqlorders/cancel.go", "case r.State == flashsale.Reserved && micros(end) > now:", "case false:"},
			{"sqlorders/reservations.go", "r.until_at <= ? AND ", "r.until_at <= ? + 1000000000 AND "},
			{"sqlorders/reservations.go", "r.until_at + ", "r.until_at - 1000000000 + "},
		},
		"the time to pay is granted again": {
			{"sqlorders/payments.go", "!r.PayGranted && until.After(r.Until)", "until.After(r.Until)"},
		},
		"who has paid twice is not refunded": {
			{"sqlorders/settle.go", "case state == flashsale.Confirmed, f.twice:", "case false:"},
			{"sqlorders/recapture.go", "if twice {", "if twice && false {"},
		},
		"what has paid is refunded": {
			{"sqlorders/settle.go", "return settled{payment: flashsale.PaymentCaptured, reservation: flashsale.Confirmed}", "return settled{payment: flashsale.PaymentRefunding, reservation: flashsale.Confirmed, reason: reasonNoUnit}"},
		},
		"a refund is made twice": {
			{"simpay/provider.go", "case err != nil || pay.status == flashsale.PayRefunded:", "case err != nil:"},
			{"simpay/provider.go", "case pay.status != flashsale.PayCaptured:", "case pay.status != flashsale.PayCaptured && pay.status != flashsale.PayRefunded:"},
		},
		"a refund is asked for until the match": {
			{"engine/paying.go", "case pay.State == flashsale.PaymentRefunding:", "case false:"},
			{"engine/refund.go", "if out.Payment.State != flashsale.PaymentRefunding {", "if true {"},
		},
		"T8 does not come about": {
			{"engine/paying.go", `case pay.State == flashsale.PaymentCaptured && pay.AppliedTo == "":`, "case false:"},
		},
		"a top-up is not looked at again": {
			{"engine/finish.go", "op, err = e.orders.BeginOperation(ctx, asBegun(op))\n\tif err != nil || op.State != flashsale.OpCommitted {", "if err != nil {"},
		},
		"a rebuild does not load which top-ups there are": {
			{"engine/rebuild.go", "return r.stock.Load(ctx, r.key, r.epoch, part)", "part.Adjusted = nil\n\t\treturn r.stock.Load(ctx, r.key, r.epoch, part)"},
		},
		"a withdrawal is refused in any epoch": {
			{"sqlorders/operations.go", "case state == flashsale.OpRefused && (op.Epoch != epoch || sku.Epoch != epoch):", "case false:"},
		},
		"a loss is not noticed": {
			{"engine/watch.go", "case v.Run != s.StoreRun:", "case false:"},
			{"engine/watch.go", "case v.Seq < s.Seq:", "case false:"},
			{"engine/watch.go", "case e.lostIn(s.Key, s.Epoch):", "case false:"},
		},
	}
}

// redundant are mutants that a thousand runs need not find, and why: another guard holds what theirs held, but for a coincidence.
func redundant() map[string]string {
	return map[string]string{
		"jobs of another epoch are decided":     "whoever rebuilds has decided all jobs of older epochs before it looks at anything, so that they have rows",
		"rows count as sent whatever the epoch": "what was delivered to an older epoch was committed before the snapshot of the next",
		"a top-up is not looked at again":       "it takes two who finish one top-up, and a rebuild between the last two steps of one; the engine has a test of it",
		"a withdrawal is refused in any epoch":  "it takes a refusal that sleeps through a rebuild in which units have come back and another has taken them; the engine has a test of it",
	}
}

// TestSourceMutants builds the product with one fault after the other, and runs the model on each until it finds it. It takes some
// minutes: HEADGATE_MODEL_MUTANTS=1 asks for it.
func TestSourceMutants(t *testing.T) {
	if os.Getenv("HEADGATE_MODEL_MUTANTS") == "" {
		t.Skip("it takes minutes: HEADGATE_MODEL_MUTANTS=1 asks for it")
	}
	sale, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	for name, changes := range sourceMutants() {
		t.Run(name, func(t *testing.T) {
			out, err := runMutant(t, sale, changes)
			switch {
			case err == nil && redundant()[name] != "":
				t.Logf("nothing was found: %s", redundant()[name])
			case err == nil:
				t.Errorf("nothing was found")
			case !strings.Contains(out, "run it again"):
				t.Errorf("it does not run: %v\n%s", err, out)
			default:
				t.Log(firstFinding(out))
			}
		})
	}
}

// runMutant runs the model, and the story of TestI13, against a product with changes.
func runMutant(t *testing.T, sale string, changes []source) (string, error) {
	t.Helper()
	dir := t.TempDir()
	texts, overlay := map[string]string{}, map[string]string{}
	for i := range changes {
		c := &changes[i]
		path := filepath.Join(sale, filepath.FromSlash(c.file))
		text, seen := texts[path]
		if !seen {
			body, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			text = string(body)
		}
		if strings.Count(text, c.old) != 1 {
			t.Fatalf("%s has %d times: %s", c.file, strings.Count(text, c.old), c.old)
		}
		texts[path] = strings.Replace(text, c.old, c.changed, 1)
	}
	for path, text := range texts {
		changed := filepath.Join(dir, strings.ReplaceAll(strings.TrimPrefix(path, sale), string(filepath.Separator), "_"))
		if err := os.WriteFile(changed, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		overlay[path] = changed
	}
	body, err := json.Marshal(map[string]any{"Replace": overlay})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(file, body, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "go", "test", "-overlay", file, "-vet=off", "-count=1", "-short", "-run", "^TestModel$|^TestI13", ".")
	cmd.Env = append(os.Environ(), "HEADGATE_MODEL_RUNS=1000", "HEADGATE_MODEL_SEED=")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// firstFinding is the first line that says what was found.
func firstFinding(out string) string {
	for line := range strings.Lines(out) {
		if _, found, ok := strings.Cut(line, "_test.go:"); ok {
			return strings.TrimSpace(found)
		}
	}
	return out
}
