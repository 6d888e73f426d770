package salehttp

import (
	"net/http"
	"os"
	"regexp"
	"strconv"
	"testing"
)

// TestDocumentHasEveryRoute, and every route has the document: nothing is served that it does not tell of, and nothing told that is not served.
func TestDocumentHasEveryRoute(t *testing.T) {
	t.Parallel()
	doc := document.Load(t)
	h := &Handler{}
	served := map[string]bool{}
	for _, r := range h.table() {
		for method := range r.methods {
			if method == http.MethodHead {
				continue
			}
			served[method+" "+r.path] = true
			if document.Operation(t, r.path, method) == nil {
				t.Errorf("%s %s is served, and not in the document", method, r.path)
			}
		}
	}
	for path, item := range doc.Paths.Map() {
		for method := range item.Operations() {
			if !served[method+" "+path] {
				t.Errorf("%s %s is in the document, and not served", method, path)
			}
		}
	}
}

// TestDocumentHasEveryCode: programs find every code, and none that does not come.
func TestDocumentHasEveryCode(t *testing.T) {
	t.Parallel()
	doc := document.Load(t)
	told := map[string]bool{}
	for _, code := range doc.Components.Schemas["Problem"].Value.Properties["code"].Value.Enum {
		told[code.(string)] = true
	}
	for code := range answers {
		if !told[string(code)] {
			t.Errorf("the document does not have the code %s", code)
		}
		delete(told, string(code))
	}
	for code := range told {
		t.Errorf("the document has a code %s that nothing is answered with", code)
	}
}

// TestThePageIsTheCode: docs/sale-http.md has every route and every code, with its status, and no other.
func TestThePageIsTheCode(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/sale-http.md")
	if err != nil {
		t.Fatal(err)
	}
	told := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| `((?:GET|POST) [^`]+)` \\||^\\| (\\d{3}) \\| `(\\w+)` \\|").FindAllStringSubmatch(string(text), -1) {
		if told[row[1]+row[2]+row[3]] {
			t.Errorf("%s stands there twice", row[0])
		}
		told[row[1]+row[2]+row[3]] = true
	}
	want := map[string]bool{}
	for code, to := range answers {
		want[strconv.Itoa(to.status)+string(code)] = true
	}
	for _, r := range (&Handler{}).table() {
		for method := range r.methods {
			if method != http.MethodHead {
				want[method+" "+r.path] = true
			}
		}
	}
	for what := range want {
		if !told[what] {
			t.Errorf("the page lacks %s", what)
		}
	}
	for what := range told {
		if !want[what] {
			t.Errorf("the page tells of %s", what)
		}
	}
}
