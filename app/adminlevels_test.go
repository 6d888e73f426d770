package app

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestTurningLevels: whoever has the token turns a switch, and is told what is wrong with a request that does not.
func TestTurningLevels(t *testing.T) {
	t.Parallel()
	h := adminOf(t, new(Health), "s3cret", true)
	send := func(method, path, body, token string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(method, path, strings.NewReader(body))
		r.Host = "localhost:9090"
		r.Header.Set("Authorization", "Bearer "+token)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	for _, c := range []struct {
		method, path, body, token string
		want                      int
		says                      string
	}{
		{"PUT", "/levels/l3", `{"on":true,"why":"the payment service is down"}`, "wrong", 401, "unauthorized"},
		{"PUT", "/levels/l1", `{"on":true,"why":"x"}`, "s3cret", 404, "write l2 or l3"},
		{"PUT", "/levels/", `{"on":true,"why":"x"}`, "s3cret", 404, ""},
		{"POST", "/levels/l3", `{"on":true,"why":"x"}`, "s3cret", 405, ""},
		{"PUT", "/levels/l3", `{"on":true}`, "s3cret", 400, "why is missing"},
		{"PUT", "/levels/l3", `{"on":true,"why":" "}`, "s3cret", 400, "why is missing"},
		{"PUT", "/levels/l3", `{"why":"x"}`, "s3cret", 400, "on is missing"},
		{"PUT", "/levels/l3", `{"on":true,"why":"x","for":"1h"}`, "s3cret", 400, "cannot be read"},
		{"PUT", "/levels/l3", `{"on":true,"why":"x"} {}`, "s3cret", 400, "something follows"},
		{"PUT", "/levels/l3", `{"on":true,"why":"x"}}`, "s3cret", 400, "something follows"},
		{"PUT", "/levels/l3", `{"on":true,"why":"x"}]`, "s3cret", 400, "something follows"},
		{"PUT", "/levels/l3", `{"on":true,"why":"x"}x`, "s3cret", 400, "something follows"},
		{"PUT", "/levels/l3", `[]`, "s3cret", 400, "cannot be read"},
		{"PUT", "/levels/l3", `null`, "s3cret", 400, "on is missing"},
		{"PUT", "/levels/l3/", `{"on":true,"why":"x"}`, "s3cret", 404, ""},
		{"DELETE", "/levels/l3", ``, "s3cret", 405, ""},
		{"POST", "/status", `x`, "s3cret", 405, ""},
		{"PUT", "/metrics", `x`, "s3cret", 405, ""},
		{"PUT", "/levels/l3", `{"on":true,"why":"` + strings.Repeat("x", 5000) + `"}`, "s3cret", 413, "is too long"},
		{"PUT", "/levels/l3", ``, "s3cret", 400, "cannot be read"},
		{"GET", "/levels", ``, "s3cret", 200, `"level": 0`},
		{"PUT", "/levels/l3", `{"on":true,"why":"the payment service is down"}`, "s3cret", 200, `"level": 3`},
		{"PUT", "/levels/l2", `{"on":true,"why":"fingerprints are broken"}`, "s3cret", 200, `"level": 3`},
		{"PUT", "/levels/l3", `{"on":false}`, "s3cret", 200, `"level": 2`},
		{"GET", "/levels", ``, "s3cret", 200, "fingerprints are broken"},
	} {
		if w := send(c.method, c.path, c.body, c.token); w.Code != c.want || !strings.Contains(w.Body.String(), c.says) {
			t.Errorf("%s %s %.60s: got %d %s", c.method, c.path, c.body, w.Code, w.Body)
		}
	}
	var now LevelStatus
	if err := json.Unmarshal(send(http.MethodGet, "/levels", "", "s3cret").Body.Bytes(), &now); err != nil || now.Why != "fingerprints are broken" || len(now.Switches) != 3 {
		t.Errorf("got %+v, %v", now, err)
	}
}
