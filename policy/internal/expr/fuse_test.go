package expr

import (
	"fmt"
	"strings"
	"testing"
)

// TestFused: the node for the common comparison answers as the library's own does, and allocates nothing.
func TestFused(t *testing.T) {
	t.Parallel()
	long := sample()
	long.path = "/" + strings.Repeat("x", MaxValue)
	long.dims["tier"] = strings.Repeat("d", MaxValue+1)
	for _, text := range []string{
		`request.method == "POST"`, `request.method != "POST"`, `"POST" == request.method`, `"GET" != request.method`,
		`request.path == "/api/v2/pay"`, `request.host == ""`, `request.ip != "198.51.100.7"`,
		`request.headers["x-app"] == "web/2.1"`, `request.headers["x-twice"] == ""`, `request.headers.x != ""`,
		`dim.tier == "vip"`, `dim["user-id"] != "u-17"`, `"vip" == dim.tier`, `dim.none == ""`, `.dim.tier == "vip"`,
		`request.cookies["sid"] == "s-1"`, `request.query["q"] != "tea"`, `response.headers["x-tokens"] == "77"`,
		`(dim.tier == "vip") == true`, `dim.tier == "a" || request.path == "b"`, `dim.tier == "a" ? true : request.path != "b"`,
		`(dim.tier == "vip" ? dim.tier : request.path) == "vip"`, `request.headers[dim.tier] == "x"`, `dim.tier == dim["user-id"]`,
	} {
		fast := mustCompile(t, text, Bool)
		checked, issues := fast.language.env.Compile(text)
		if issues.Err() != nil {
			t.Fatal(issues.Err())
		}
		if _, err := fast.language.inspect(checked); err != nil {
			t.Fatal(err)
		}
		program, err := fast.language.plan(checked, true)
		if err != nil {
			t.Fatal(err)
		}
		slow := &Expression{text: text, language: fast.language, program: program}
		for name, in := range map[string]*fake{"sample": sample(), "nothing": {}, "too long": long} {
			got, gotErr := fast.Bool(in)
			want, wantErr := slow.Bool(in)
			if got != want || fmt.Sprint(gotErr) != fmt.Sprint(wantErr) {
				t.Errorf("%s of %s: %v, %v, but the library has %v, %v", text, name, got, gotErr, want, wantErr)
			}
		}
	}
}

func TestCommonConditionAllocatesNothing(t *testing.T) {
	e := mustCompile(t, `request.headers["x-app"] != "internal" && dim.tier == "vip"`, Bool)
	in := &cheap{app: "app/2.1", tier: "vip"}
	if n := testing.AllocsPerRun(200, func() {
		if ok, err := e.Bool(in); !ok || err != nil {
			t.Errorf("got %v, %v", ok, err)
		}
	}); n >= 1 { // the pools may be emptied in between
		t.Errorf("%v allocations", n)
	}
}
