package salehttp

import "testing"

// TestScriptIsServed as a script, that can be kept.
func TestScriptIsServed(t *testing.T) {
	t.Parallel()
	s := openShop(t, plan{total: 1})
	got := s.get(Prefix+"/~/page.js", "").is(200, "")
	if kind := got.header.Get("Content-Type"); kind != "text/javascript; charset=utf-8" {
		t.Errorf("it is served as %q", kind)
	}
	tag := got.header.Get("Etag")
	s.do(ask{method: "GET", path: Prefix + "/~/page.js", header: map[string]string{"If-None-Match": tag}}).is(304, "")
}
