package saleadmin

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// TestDocumentationOfRoles: the table of the documentation has every endpoint with its role, and no other.
func TestDocumentationOfRoles(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/sale-admin.md")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for _, to := range (&api{}).routes() {
		want[to.method+" "+to.path] = to.role.String()
	}
	for _, row := range regexp.MustCompile("(?m)^\\| `((?:GET|POST) [^`]+)` \\| (\\w+) \\|").FindAllStringSubmatch(string(text), -1) {
		if role, ok := want[row[1]]; !ok || role != row[2] {
			t.Errorf("%s is for %q, and the documentation says %s", row[1], role, row[2])
		}
		delete(want, row[1])
	}
	if len(want) > 0 {
		t.Errorf("not in the documentation: %v", want)
	}
}

// TestDocumentedSale: the sale of the documentation can be created, and shows every field.
func TestDocumentedSale(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/sale-admin.md")
	if err != nil {
		t.Fatal(err)
	}
	_, example, _ := strings.Cut(string(text), "```yaml\n")
	example, _, _ = strings.Cut(example, "```")
	var spec SaleSpec
	if err := yaml.UnmarshalWithOptions([]byte(example), &spec, yaml.Strict()); err != nil {
		t.Fatal(err)
	}
	if _, err := spec.sale(); err != nil {
		t.Error(err)
	}
	if spec.Title == "" || spec.Zone == "" || spec.Hold == "" || spec.PayTime == "" || spec.Grace == "" || spec.Rate == 0 || spec.SKUs[0].PurchaseLimit == 0 || spec.SKUs[0].Title == "" {
		t.Errorf("it does not show every field: %+v", spec)
	}
}
