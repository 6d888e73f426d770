package httpverdict

import (
	"net/http"
	"testing"
)

func TestCheckOrigin(t *testing.T) {
	t.Parallel()
	p := http.NewCrossOriginProtection()
	if err := p.AddTrustedOrigin("https://shop.example.com"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		method        string
		origins, site []string
		ok            bool
	}{
		{"POST", nil, nil, true},
		{"POST", []string{"https://shop.example.com"}, nil, true},
		{"POST", []string{"https://evil.example.net"}, nil, false},
		{"POST", []string{"https://shop.example.com", "https://evil.example.net"}, nil, false},
		{"POST", []string{"https://shop.example.com", "https://shop.example.com"}, nil, false},
		{"POST", []string{"", "https://evil.example.net"}, nil, false},
		{"POST", nil, []string{"same-origin", "cross-site"}, false},
		{"POST", nil, []string{"", "cross-site"}, false},
		{"POST", nil, []string{"same-origin"}, true},
		{"GET", []string{"https://evil.example.net", "https://shop.example.com"}, []string{"a", "b"}, true},
	} {
		r := &http.Request{Method: c.method, Host: "sale.example.com", Header: http.Header{"Origin": c.origins, "Sec-Fetch-Site": c.site}}
		if err := CheckOrigin(p, r); (err == nil) != c.ok {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
