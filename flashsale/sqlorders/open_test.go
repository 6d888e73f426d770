package sqlorders

import "testing"

func TestOpenInMemory(t *testing.T) {
	o, err := Open(t.Context(), Config{URL: "sqlite::memory:"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.Now(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := o.Close(); err != nil {
		t.Fatal(err)
	}
}
