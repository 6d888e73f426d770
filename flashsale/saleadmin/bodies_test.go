package saleadmin

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/iotest"
)

// TestBodiesThatDoNotCome: one that stalls has come too late, one that breaks off is none, and neither changes anything.
func TestBodiesThatDoNotCome(t *testing.T) {
	t.Parallel()
	r := opened(t)
	before := r.now()
	for _, c := range []struct {
		err    error
		status int
		says   string
	}{
		{os.ErrDeadlineExceeded, 408, `"code":"body_timeout"`},
		{fmt.Errorf("too slow: %w", os.ErrDeadlineExceeded), 408, `"retry_after":1`},
		{io.ErrUnexpectedEOF, 400, "it breaks off"},
		{errors.New("reset"), 400, "it breaks off"},
	} {
		q := httptest.NewRequestWithContext(t.Context(), "POST", "/sales/eleven/pause", io.MultiReader(strings.NewReader(`{"rea`), iotest.ErrReader(c.err)))
		q.Header.Set("Content-Type", "application/json")
		q.Header.Set("Authorization", "Bearer admin")
		q.ContentLength = 100
		w := httptest.NewRecorder()
		r.handler.ServeHTTP(w, q)
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.says) || w.Header().Get("Connection") != "close" {
			t.Errorf("%v: got %d %s, want %d %s", c.err, w.Code, w.Body, c.status, c.says)
		}
	}
	for _, types := range [][]string{{"application/json", "text/plain"}, {"application/json", "application/json"}, {"application/json; charset=gbk"}} {
		r.send("admin", "POST", "/sales/eleven/pause", why, http.Header{"Content-Type": types}).is(http.StatusUnsupportedMediaType)
	}
	r.send("admin", "POST", "/sales/eleven/pause", why, http.Header{"Content-Encoding": {"gzip"}}).is(http.StatusUnsupportedMediaType)
	if after := r.now(); after != before {
		t.Errorf("something has changed:\n%s\n%s", before, after)
	}
}
