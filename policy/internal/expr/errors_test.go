package expr

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// TestErrors has one text for each thing that can be wrong, and what is said about it.
func TestErrors(t *testing.T) {
	t.Parallel()
	requestFields := "request.bytes, request.cookies, request.headers, request.host, request.ip, request.method, request.path, request.query, request.time"
	for _, tc := range []struct {
		text string
		want string // LINE:COLUMN: MESSAGE
	}{
		// names
		{`request.methd == "a"`, `1:1: request.methd is unknown; nearest is request.method`},
		{`true && reqest.method == "a"`, `1:9: reqest.method is unknown; nearest is request.method`},
		{`request.color == "a"`, `1:1: request.color is unknown; there are ` + requestFields},
		{`response.code == 1`, `1:1: response.code is unknown; there are response.bytes, response.headers, response.status`},
		{`request`, `1:1: request stands only before a dot: ` + requestFields},
		{`tier == "vip"`, `1:1: tier is unknown; a dimension is dim.tier, and a text stands in quotes`},
		{`dim.tier == vip`, `1:13: vip is unknown; a dimension is dim.vip, and a text stands in quotes`},
		{`dim.user-id == "a"`, `1:10: a name with "-" stands in brackets, such as dim["user-id"]`},
		{`request.headers.x-app == "a"`, `1:19: a name with "-" stands in brackets, such as dim["user-app"]`},
		{`request.bytes - id > 1`, `1:17: id is unknown; a dimension is dim.id, and a text stands in quotes`},
		{"request.headers['a'] ==\n\n  requet.path", `3:3: requet.path is unknown; nearest is request.path`},
		{`"é" == "ü" && x`, `1:15: x is unknown; a dimension is dim.x, and a text stands in quotes`},
		{`int == int`, `1:1: int is a type, and types are no values here`},
		{`["a"].exists(dim, dim == "a")`, `1:7: dim has a meaning already; choose another name`},

		// entries
		{`dim`, `1:1: name the dimension: dim.tier or dim["user-id"]`},
		{`dim == dim`, `1:1: name the dimension: dim.tier or dim["user-id"]`},
		{`dim.exists(d, d == "")`, `1:1: name the dimension: dim.tier or dim["user-id"]`},
		{`dim[request.method] == ""`, `1:5: name the dimension: dim.tier or dim["user-id"]; a computed name is not known at load`},
		{`request.method in dim`, `1:1: name the dimension: dim.tier or dim["user-id"]; a computed name is not known at load`},
		{`dim[""] == ""`, `1:5: the name of the entry is empty`},
		{`request.headers == {}`, `1:1: request.headers is read by name: request.headers["x-app"]`},
		{`request.cookies.exists(c, true)`, `1:1: request.cookies is read by name: request.cookies["sid"]`},
		{`size(request.query) > 1`, `1:6: request.query is read by name: request.query["q"]`},
		{`request.headers[""] == ""`, `1:17: no header can have the name ""`},
		{`request.headers["host"] == ""`, `1:17: the header Host is request.host`},
		{`"a b" in request.headers`, `1:1: no header can have the name "a b"`},
		{`has(request.method)`, `1:5: has takes an entry, such as has(dim.tier); compare others with '' or 0`},
		{`has(dim)`, `1:5: has takes an entry, such as has(dim.tier)`},

		// types
		{`request.headers["a"] > 1`, `1:22: > does not go with a text and a whole number; int(…) makes a whole number of a text`},
		{`1.5 > request.bytes`, `1:5: > does not go with a number of type double and a whole number`},
		{`dim.a == null`, `1:7: == does not go with a text and a value of type null`},
		{`-dim.a > 2`, `1:1: - does not go with a text`},
		{`request.method && true`, `1:1: true or false is needed here, and this is a text`},
		{`response.status == 1 ? 1 : "a"`, `1:22: what follows ? and : is of one type, and here it is a whole number and a text`},
		{`dim.a ? true : false`, `1:7: what stands before ? is true or false, and here it is a text`},
		{`request.method.foo`, `1:15: a text has no fields`},
		{`dim['a']['b'] == 'x'`, `1:9: [] does not go with a text and a text`},
		{`request.method.exists(x, true)`, `1:1: all, exists, map and filter go through a list, such as text.split(','), and this is a text`},
		{`[1, "a"].exists(x, x == 1)`, `1:1: what is in a list or a map is all of one type`},
		{`{"a": 1, "b": "x"}["a"] == 1`, `1:1: what is in a list or a map is all of one type`},
		{`request.path.split(",") == ["a"]`, `1:25: lists are not compared as a whole; use in, all or exists`},
		{`google.protobuf.Timestamp{seconds: 1} == request.time`, `1:26: messages have no use here; an expression yields a text, a number or true or false`},
		{`request.bytes / 1024`, `1:1: this yields a whole number, and true or false is needed here`},
		{`dim.tier`, `1:1: this yields a text, and true or false is needed here`},
		{`[true]`, `1:1: this yields a list, and true or false is needed here`},
		{`{"a": true}`, `1:1: this yields a map, and true or false is needed here`},
		{`request.time`, `1:1: this yields a time, and true or false is needed here`},
		{`duration("1s")`, `1:1: this yields a duration, and true or false is needed here`},

		// functions
		{`foo()`, `1:1: foo is unknown`},
		{`request.method.startWith("a")`, `1:16: startWith is unknown; nearest is startsWith`},
		{`request.method.startsWith(1)`, `1:16: startsWith is not for a text and a whole number; it is written text.startsWith(text)`},
		{`startsWith("a", "b")`, `1:1: startsWith is not for a text and a text; it is written text.startsWith(text)`},
		{`request.path.trim(1) == ""`, `1:14: trim is not for a text and a whole number; it is written text.trim()`},
		{`dyn(1) == 1`, `1:1: dyn is not part of this language`},
		{`type(1) == type(2)`, `1:1: type is not part of this language`},
		{`"%s".format([1]) == ""`, `1:6: format is not part of this language`},
		{`["a"].join(",") == ""`, `1:7: join is not part of this language`},
		{`bytes("a") == b"a"`, `1:1: bytes is not part of this language`},
		{`cel.bind(x, 1, x) == 1`, `1:1: cel is unknown; a dimension is dim.cel, and a text stands in quotes`},
		{`["a"].exists(x)`, `1:7: this is not how it is written: list.exists(item, condition)`},
		{`["a"].map(x) == []`, `1:7: this is not how it is written: list.map(item, value)`},

		// constants
		{`request.path.matches(dim.p)`, `1:22: the pattern of matches is a constant; startsWith, endsWith and contains take any text`},
		{`request.path.matches("(")`, "1:22: the pattern of matches is none: missing closing ): `(`"},
		{`request.path.matches("((x{100}){100}){100}")`, "1:22: the pattern of matches is none: invalid repeat count: `{100}`"},
		{`matches(request.path, "a")`, `1:1: write text.matches('pattern')`},
		{`request.time.getHours(dim.zone) > 1`, `1:23: a zone is a constant, such as 'Asia/Shanghai' or '+08:00'`},
		{`request.time.getHours("Nowhere/None") > 1`, `1:23: the zone "Nowhere/None" is unknown; it is such as 'Asia/Shanghai' or '+08:00'`},
		{`request.time.getHours("Local") > 1`, `1:23: the zone "Local" is unknown; it is such as 'Asia/Shanghai' or '+08:00'`},
		{`request.time.getHours("+8") > 1`, `1:23: the zone "+8" is unknown; it is such as 'Asia/Shanghai' or '+08:00'`},
		{`size(dim.a.split(",", response.status)) > 1`, `1:23: the limit of split is a constant from 1 to 1024`},
		{`size(dim.a.split(",", 0)) > 1`, `1:23: the limit of split is a constant from 1 to 1024`},
		{`int("abc") > 1`, `1:1: a constant is not what it is taken for: type conversion error from 'string' to 'int'`},
		{`true && timestamp("x") < request.time`, `1:9: a constant is not what it is taken for: invalid RFC 3339 timestamp "x"`},
		{`response.status == 99999999999999999999`, `1:20: a whole number is from -9223372036854775808 to 9223372036854775807`},

		// what is no expression
		{``, `1:1: the expression ends too early`},
		{" \n ", `2:2: the expression ends too early`},
		{`request.method ==`, `1:18: the expression ends too early`},
		{`(true`, `1:6: ) is missing before this`},
		{`true)`, `1:5: ) is not expected here`},
		{`request.method = "a"`, `1:16: = is no operator; == compares`},
		{`true & false`, `1:6: & is no operator; && is and`},
		{`true | false`, `1:6: | is no operator; || is or`},
		{`true and false`, `1:6: and is no operator; && is`},
		{`true or false`, `1:6: or is no operator; || is`},
		{`"abc`, `1:1: the text in quotes does not end, or has an unknown escape`},
		{`dim.a == 'it's'`, `1:14: s is not expected here`},
		{`"\q" == dim.a`, `1:1: the text in quotes does not end, or has an unknown escape`},
		{`if`, `1:1: if is a reserved word`},
		{`dim.?a == ""`, `1:4: unsupported syntax '.?'`},
		{"true\x00", `1:5: the control character 0x0 does not belong here`},
		{"true &&\n \x1b[31m", `2:2: the control character 0x1b does not belong here`},
		{"'é' == '\xff'", `1:9: the byte 0xff is not UTF-8`},
		{"'\ufffd' == dim.a && a", `1:17: a is unknown; a dimension is dim.a, and a text stands in quotes`},
		{strings.Repeat("(", 70) + "true" + strings.Repeat(")", 70), `1:1: more than 60 parts are nested, or stand in a row`},
		{strings.Repeat("1+", 200) + "1 == 1", `1:1: more than 60 parts are nested, or stand in a row`},
		{"'" + strings.Repeat("a", MaxText) + "' == ''", `1:1: the expression has 2056 bytes; 2048 are allowed`},
	} {
		e, err := Compile(tc.text, Bool)
		if err == nil {
			t.Errorf("%s compiles, into at most %d steps; want %s", tc.text, e.MaxSteps(), tc.want)
			continue
		}
		if _, ok := errors.AsType[*Error](err); !ok || err.Error() != tc.want {
			t.Errorf("%.80s\n got %v\nwant %s", tc.text, err, tc.want)
		}
	}
}

func TestKinds(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		text string
		kind Kind
		want string
	}{
		{`dim.tier`, Text, ""},
		{`request.bytes`, Int, ""},
		{`true`, Bool, ""},
		{`dim.cents`, Int, "1:1: this yields a text, and a whole number is needed here; int(…) makes one of it"},
		{`double(dim.cents)`, Int, "1:1: this yields a number of type double, and a whole number is needed here; int(…) makes one of it"},
		{`request.bytes`, Text, "1:1: this yields a whole number, and a text is needed here; string(…) makes one of it"},
		{`1u`, Int, "1:1: this yields a number of type uint, and a whole number is needed here"},
		{`null`, Text, "1:1: this yields a value of type null, and a text is needed here"},
	} {
		if _, err := Compile(tc.text, tc.kind); fmt.Sprint(err) != tc.want && (err != nil || tc.want != "") {
			t.Errorf("%s: got %v, want %q", tc.text, err, tc.want)
		}
	}
}

func TestCompilerKeeps(t *testing.T) {
	t.Parallel()
	var c Compiler
	first, err := c.Compile(`dim.tier == "vip"`, Bool)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := c.Compile(`dim.tier == "vip"`, Bool); err != nil || again != first {
		t.Errorf("the same text: %p, %v, want %p", again, err, first)
	}
	if other, err := c.Compile(`dim.tier == "vip2"`, Bool); err != nil || other == first {
		t.Errorf("another text: %p, %v", other, err)
	}
	_, wrong := c.Compile(`dim.tier`, Bool)
	if _, err := c.Compile(`dim.tier`, Bool); err == nil || !errors.Is(err, wrong) {
		t.Errorf("the same mistake: %v, want %v", err, wrong)
	}
	if e, err := c.Compile(`dim.tier`, Text); err != nil || e == nil {
		t.Errorf("the same text of another kind: %v", err)
	}
}
