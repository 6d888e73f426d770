package expr

import (
	"net/http"
	"time"
)

// fake is a request with its response. The zero value has nothing in it.
type fake struct {
	method, path, host, ip string
	headers, responses     http.Header
	cookies, query, dims   map[string]string
	bytes, answered        int64
	status                 int
	now                    time.Time
	touched                []string // the names of the methods that were called, if it is not nil
	panics                 string   // the name of a method that panics
}

func (f *fake) touch(method string) {
	if f.panics == method {
		panic("this method always panics")
	}
	if f.touched != nil {
		f.touched = append(f.touched, method)
	}
}

func only(values []string) string {
	if len(values) == 1 {
		return values[0]
	}
	return ""
}

func (f *fake) Method() string { f.touch("Method"); return f.method }
func (f *fake) Path() string   { f.touch("Path"); return f.path }
func (f *fake) Host() string   { f.touch("Host"); return f.host }
func (f *fake) IP() string     { f.touch("IP"); return f.ip }
func (f *fake) Header(name string) string {
	f.touch("Header:" + name)
	return only(f.headers.Values(name))
}
func (f *fake) Cookie(name string) string    { f.touch("Cookie:" + name); return f.cookies[name] }
func (f *fake) Query(name string) string     { f.touch("Query:" + name); return f.query[name] }
func (f *fake) Bytes() int64                 { f.touch("Bytes"); return f.bytes }
func (f *fake) Dimension(name string) string { f.touch("Dimension:" + name); return f.dims[name] }
func (f *fake) Now() time.Time               { f.touch("Now"); return f.now }
func (f *fake) Status() int                  { f.touch("Status"); return f.status }
func (f *fake) ResponseBytes() int64         { f.touch("ResponseBytes"); return f.answered }
func (f *fake) ResponseHeader(name string) string {
	f.touch("ResponseHeader:" + name)
	return only(f.responses.Values(name))
}

// sample is a request of a shop at 20:00 in Shanghai.
func sample() *fake {
	return &fake{
		method: "POST", path: "/api/v2/pay", host: "shop.example.com", ip: "198.51.100.7", bytes: 2048,
		headers: http.Header{
			"X-App": {"web/2.1"}, "X-Amount-Cents": {"12999"}, "X-Roles": {"guest, vip ,staff"}, "X-Twice": {"a", "b"}, "User-Agent": {"Mozilla/5.0 (compatible; ExampleBot/1.0)"},
		},
		cookies: map[string]string{"sid": "s-1"}, query: map[string]string{"q": "tea"},
		dims:   map[string]string{"tier": "vip", "user-id": "u-17"},
		status: 401, answered: 512, responses: http.Header{"X-Tokens": {"77"}},
		now: time.Date(2026, 11, 11, 12, 0, 0, 0, time.UTC),
	}
}
