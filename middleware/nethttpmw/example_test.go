package nethttpmw_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/headgate-io/headgate/middleware/httpverdict"
	"github.com/headgate-io/headgate/middleware/nethttpmw"
)

// onlyGet stands for a policy, which package policy makes from a file.
type onlyGet struct{}

func (onlyGet) Decide(_ context.Context, r *httpverdict.Request) *httpverdict.Verdict {
	if r.Method == http.MethodGet {
		return &httpverdict.Verdict{Binding: -1}
	}
	return &httpverdict.Verdict{Kind: httpverdict.Forbidden, Rule: "read-only", Code: "read_only", Binding: -1}
}

func Example() {
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") })

	limit, err := nethttpmw.New(onlyGet{}, nethttpmw.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	handler := limit(mux)

	for _, method := range []string{http.MethodGet, http.MethodPost} {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(method, "/", nil))
		fmt.Println(method, w.Code)
	}
	// Output:
	// GET 200
	// POST 403
}
