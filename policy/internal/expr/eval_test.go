package expr

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
)

func mustCompile(t *testing.T, text string, kind Kind) *Expression {
	t.Helper()
	e, err := Compile(text, kind)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return e
}

// run returns what an expression yields, whatever its kind.
func run(e *Expression, kind Kind, in Input) (any, error) {
	switch kind {
	case Int:
		return e.Int(in)
	case Text:
		return e.Str(in)
	default:
		return e.Bool(in)
	}
}

func kindOf(want any) Kind {
	switch want.(type) {
	case int64:
		return Int
	case string:
		return Text
	default:
		return Bool
	}
}

func TestValues(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]any{
		// what a request has
		`request.method == "POST" && request.host == "shop.example.com" && request.ip == "198.51.100.7"`: true,
		`request.path.startsWith("/api/") && request.path.endsWith("/pay")`:                              true,
		`request.bytes`:                       int64(2048),
		`request.bytes / 1024 + 1`:            int64(3),
		`request.headers["x-app"]`:            "web/2.1",
		`request.headers["X-APP"]`:            "web/2.1",
		`request.headers["x-" + "app"]`:       "web/2.1",
		`request.headers["x-app"] + dim.tier`: "web/2.1vip",
		`request.cookies["sid"]`:              "s-1",
		`request.cookies.sid`:                 "s-1",
		`request.query["q"]`:                  "tea",
		`request.query[request.query["r"]]`:   "",
		`dim.tier`:                            "vip",
		`dim["user-id"]`:                      "u-17",
		`response.status == 401`:              true,
		`response.bytes`:                      int64(512),
		`int(response.headers["x-tokens"])`:   int64(77),
		`.dim.tier`:                           "vip",

		// what it has not
		`request.headers["x-none"]`:                             "",
		`request.headers["x-twice"]`:                            "",
		`request.cookies["none"] == ""`:                         true,
		`dim.none == ""`:                                        true,
		`"x-app" in request.headers`:                            true,
		`"x-none" in request.headers`:                           false,
		`"sid" in request.cookies && !("z" in request.cookies)`: true,
		`"q" in request.query`:                                  true,
		`"tier" in dim`:                                         true,
		`"none" in dim`:                                         false,
		`has(dim.tier)`:                                         true,
		`has(dim.none)`:                                         false,
		`has(request.headers.none)`:                             false,
		`"x-tokens" in response.headers && !has(response.headers.tokens)`: true,

		// what can be done with it
		`request.headers["x-app"] != "internal" && dim.tier == "vip"`:                 true,
		`request.headers["x-roles"].split(",", 16).exists(r, r.trim() == "vip")`:      true,
		`request.headers["x-roles"].split(",", 16).all(r, r.trim() != "")`:            true,
		`request.headers["x-roles"].split(",", 16).filter(r, r.contains("i")).size()`: int64(1),
		`size(request.headers["x-roles"].split(",", 2))`:                              int64(2),
		`request.headers["user-agent"].lowerAscii().contains("bot")`:                  true,
		`request.headers["user-agent"].matches("(?i)examplebot")`:                     true,
		`dim.tier in ["vip", "gold"]`:                                                 true,
		`dim.tier in ["basic"]`:                                                       false,
		`{"vip": 5, "basic": 1}[dim.tier]`:                                            int64(5),
		`dim.tier == "vip" ? 5 : 1`:                                                   int64(5),
		`int(request.headers["x-amount-cents"])`:                                      int64(12999),
		`int(double(request.headers["x-amount-cents"]) / 100.0)`:                      int64(129),
		`request.path.substring(5, 7)`:                                                "v2",
		`request.path.replace("/", ".")`:                                              ".api.v2.pay",
		`request.path.indexOf("v2") + request.path.lastIndexOf("/")`:                  int64(5 + 7),
		`string(response.status) + "!"`:                                               "401!",
		`"é".size()`:                                                                  int64(1),
		`request.time.getHours()`:                                                     int64(12),
		`request.time.getHours("Asia/Shanghai")`:                                      int64(20),
		`request.time.getHours("+05:30") * 100 + request.time.getMinutes("+05:30")`:   int64(1730),
		`request.time.getFullYear("UTC") * 10000 + request.time.getMonth("UTC") * 100 + request.time.getDate("UTC")`: int64(20261011),
		`request.time.getDayOfWeek("-12:00")`:                                int64(3),
		`request.time.getDayOfYear("UTC")`:                                   int64(314),
		`request.time.getSeconds("UTC")`:                                     int64(0),
		`request.time >= timestamp("2026-11-11T20:00:00+08:00")`:             true,
		`request.time - timestamp("2026-11-11T11:00:00Z") == duration("1h")`: true,
		`response.status / 0 == 1 || true`:                                   true, // the side that is known decides
		"request.method ==\n\n  'POST' // the end":                           true,
	} {
		kind := kindOf(want)
		e, err := Compile(text, kind)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got, err := run(e, kind, sample()); err != nil || got != want {
			t.Errorf("%s: got %v, %v, want %v", text, got, err, want)
		}
	}
}

// TestNothing: of an empty request and before the response, everything reads as nothing.
func TestNothing(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]any{
		`request.method + request.path + request.host + request.ip`:                                        "",
		`request.headers["a"] + request.cookies["a"] + request.query["a"] + dim.a + response.headers["a"]`: "",
		`response.status + response.bytes + request.bytes`:                                                 int64(0),
		`response.status == 401`:  false,
		`"a" in response.headers`: false,
	} {
		if got, err := run(mustCompile(t, text, kindOf(want)), kindOf(want), &fake{}); err != nil || got != want {
			t.Errorf("%s: got %v, %v, want %v", text, got, err, want)
		}
	}
}

func TestRunTimeErrors(t *testing.T) {
	t.Parallel()
	long := sample()
	long.path = "/" + strings.Repeat("x", MaxValue)
	long.method = strings.Repeat("M", maxWord+1)
	long.dims["tier"] = strings.Repeat("d", MaxValue+1)
	long.headers.Set("X-App", strings.Repeat("9", MaxValue+1))
	long.headers.Set("X-Roles", strings.Repeat("z", MaxValue))
	for text, tc := range map[string]struct {
		kind Kind
		in   *fake
		want string // part of the message
	}{
		`int(request.headers["x-app"])`:                          {Int, sample(), "type conversion error from 'string' to 'int'"},
		`int(request.headers["x-none"])`:                         {Int, sample(), "type conversion error"},
		`response.status / (response.status - 401)`:              {Int, sample(), "division by zero"},
		`response.status % (response.status - 401)`:              {Int, sample(), "modulus by zero"},
		`request.bytes * 9223372036854775807`:                    {Int, sample(), "overflow"},
		`request.bytes + 9223372036854775807`:                    {Int, sample(), "overflow"},
		`int(double(request.headers["x-amount-cents"]) * 1e300)`: {Int, sample(), "integer overflow"},
		`{"gold": 5}[dim.tier]`:                                  {Int, sample(), "no such key"},
		`request.path.split("/")[9]`:                             {Text, sample(), "index out of bounds"},
		`request.path.substring(50)`:                             {Text, sample(), "index out of range"},
		`timestamp(dim.tier) < request.time`:                     {Bool, sample(), "invalid RFC 3339 timestamp"},
		`request.path == "/"`:                                    {Bool, long, "request.path has 8193 bytes; 8192 are looked at"},
		`request.method == "GET"`:                                {Bool, long, "request.method has 257 bytes; 256 are looked at"},
		`dim.tier == "vip"`:                                      {Bool, long, "dim has 8193 bytes; 8192 are looked at"},
		`request.headers["x-app"] == ""`:                         {Bool, long, "request.headers has 8193 bytes"},
		`request.headers["x-roles"] + "1"`:                       {Text, long, "the result has 8193 bytes; 8192 are allowed"},
	} {
		got, err := run(mustCompile(t, text, tc.kind), tc.kind, tc.in)
		if err == nil {
			t.Errorf("%s: got %v, want an error with %q", text, got, tc.want)
			continue
		}
		if !strings.Contains(err.Error(), tc.want) || len(err.Error()) > 400 {
			t.Errorf("%s: got %q, want %q", text, err, tc.want)
		}
	}
}

// TestPanickingInput: what an input panics with stays inside.
func TestPanickingInput(t *testing.T) {
	t.Parallel()
	in := sample()
	in.panics = "Path"
	if _, err := mustCompile(t, `request.path == "/"`, Bool).Bool(in); err == nil || !strings.Contains(err.Error(), "always panics") {
		t.Errorf("got %v", err)
	}
}

// TestWrongKind: an expression that is asked for another kind than its own says so.
func TestWrongKind(t *testing.T) {
	t.Parallel()
	number := mustCompile(t, `request.bytes`, Int)
	if _, err := number.Bool(sample()); err == nil || !strings.Contains(err.Error(), "of type int") {
		t.Errorf("Bool of a number: %v", err)
	}
	if _, err := number.Str(sample()); err == nil || !strings.Contains(err.Error(), "of type int") {
		t.Errorf("Str of a number: %v", err)
	}
	if _, err := mustCompile(t, `dim.tier`, Text).Int(sample()); err == nil || !strings.Contains(err.Error(), "of type string") {
		t.Errorf("Int of a text: %v", err)
	}
}

func TestFindings(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		text       string
		dimensions []string
		inputs     []string
		response   bool
		calls      []string // what is called of the input
	}{
		{`true`, []string{}, nil, false, nil},
		{`request.headers["x-app"] != "internal" && dim.tier == "vip"`, []string{"tier"}, []string{"headers"}, false, []string{"Header:X-App", "Dimension:tier"}},
		{`dim["user-id"] == dim.a && !has(dim.b) && !("c" in dim) && dim.a == ""`, []string{"a", "b", "c", "user-id"}, nil, false,
			[]string{"Dimension:user-id", "Dimension:a", "Dimension:b", "Dimension:c", "Dimension:a"}},
		{`response.status == 401`, []string{}, nil, true, []string{"Status"}},
		{`response.bytes > 1 || has(response.headers.x)`, []string{}, nil, true, []string{"ResponseBytes"}},
		{`request.bytes > 1 || request.time < timestamp("2020-01-01T00:00:00Z")`, []string{}, []string{"bytes", "time"}, false, []string{"Bytes"}},
		{`request.cookies["a"] + request.query["b"] + request.ip + request.host + request.method + request.path == ""`, []string{},
			[]string{"cookies", "host", "ip", "method", "path", "query"}, false, []string{"Cookie:a", "Query:b", "IP", "Host", "Method", "Path"}},
		{`request.headers["x-" + dim.kind] == ""`, []string{"kind"}, []string{"headers"}, false, []string{"Dimension:kind", "Header:x-"}},
		{`["a"].exists(x, x == dim.y)`, []string{"y"}, nil, false, []string{"Dimension:y"}},
	} {
		e := mustCompile(t, tc.text, Bool)
		if got := e.Dimensions(); !slices.Equal(got, tc.dimensions) {
			t.Errorf("%s: dimensions %q, want %q", tc.text, got, tc.dimensions)
		}
		if got := e.Inputs(); !slices.Equal(got, tc.inputs) {
			t.Errorf("%s: inputs %q, want %q", tc.text, got, tc.inputs)
		}
		if e.UsesResponse() != tc.response || e.UsesBody() || e.Text() != tc.text {
			t.Errorf("%s: response %v, body %v, text %q", tc.text, e.UsesResponse(), e.UsesBody(), e.Text())
		}
		in := sample()
		in.touched = []string{}
		in.dims = nil
		if _, err := e.Bool(in); err != nil || !slices.Equal(in.touched, append([]string{}, tc.calls...)) {
			t.Errorf("%s: called %q, %v, want %q", tc.text, in.touched, err, tc.calls)
		}
	}
}

func TestDimensionAt(t *testing.T) {
	t.Parallel()
	e := mustCompile(t, "dim.tier == 'a' &&\n  dim[\"user-id\"] != '' && has(dim.x) && dim.tier != 'b'", Bool)
	for name, want := range map[string]Place{"tier": {1, 1}, "user-id": {2, 7}, "x": {2, 27}, "none": {}} {
		if got := e.DimensionAt(name); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

func TestConcurrent(t *testing.T) {
	t.Parallel()
	e := mustCompile(t, `request.headers["x-roles"].split(",", 16).exists(r, r.trim() == dim.tier) && request.path.matches("^/api")`, Bool)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			in := sample()
			want := i%2 == 0
			if !want {
				in.dims["tier"] = "none"
			}
			for range 300 {
				if got, err := e.Bool(in); err != nil || got != want {
					t.Errorf("got %v, %v, want %v", got, err, want)
					return
				}
			}
		})
	}
	wg.Wait()
}

// TestCompileConcurrently has loops and mistakes beside each other, in a language that nobody has used before.
func TestCompileConcurrently(t *testing.T) {
	t.Parallel()
	l, err := newLanguage()
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range int64(6) {
				e, err := l.compile(fmt.Sprintf(`[1, 2].all(x, x > 0) ? request.bytes + %d : 0`, i), Int)
				if err != nil {
					t.Error(err)
					return
				}
				if got, err := e.Int(sample()); err != nil || got != 2048+i {
					t.Errorf("got %d, %v, want %d", got, err, 2048+i)
				}
				if _, err := l.compile(`request.metod == "GET"`, Bool); err == nil || !strings.HasSuffix(err.Error(), "nearest is request.method") {
					t.Errorf("got %v", err)
				}
			}
		})
	}
	wg.Wait()
}
