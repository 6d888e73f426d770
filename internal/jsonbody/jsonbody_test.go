package jsonbody

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
)

type inner struct {
	Total int64 `json:"total"`
}

type outer struct {
	Name  *string `json:"name"`
	Count *int64  `json:"count"`
	Force bool    `json:"force"`
	Items []inner `json:"items"`
	Rest  *inner  `json:"rest"`
}

func TestDecode(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		body string
		want *Fault // without Err; nil for none
	}{
		{`{}`, nil},
		{` {"name":"x","count":-3,"force":true,"items":[{"total":1}],"rest":{"total":2}} ` + "\n", nil},
		{`{"name":null,"items":null}`, nil},
		{``, &Fault{Kind: Partial}},
		{` `, &Fault{Kind: Partial}},
		{`{`, &Fault{Kind: Partial}},
		{`{"name":"x"`, &Fault{Kind: Partial}},
		{`null`, &Fault{Kind: NotObject}},
		{`[]`, &Fault{Kind: NotObject}},
		{`"name"`, &Fault{Kind: NotObject}},
		{`{"name":"x",}`, &Fault{Kind: NotJSON, Offset: 12}},
		{`{'name':1}`, &Fault{Kind: NotJSON, Offset: 1}},
		{"\xef\xbb\xbf{}", &Fault{Kind: NotJSON, Offset: 1}},
		{"{\"name\":\"\xff\"}", &Fault{Kind: NotUTF8}},
		{`{} {}`, &Fault{Kind: Trailing, Offset: 4}},
		{`{}x`, &Fault{Kind: Trailing, Offset: 2}},
		{`{}]`, &Fault{Kind: Trailing, Offset: 2}},
		{`{"nam":"x"}`, &Fault{Kind: UnknownField, Field: "nam"}},
		{`{"Name":"x"}`, &Fault{Kind: UnknownField, Field: "Name"}},
		{`{"":1}`, &Fault{Kind: UnknownField}},
		{`{"itemſ":1}`, &Fault{Kind: UnknownField, Field: "itemſ"}},
		{`{"items":[{"total":1,"price":2}]}`, &Fault{Kind: UnknownField, Field: "price"}},
		{`{"name":"x","name":"y"}`, &Fault{Kind: Repeated, Field: "name"}},
		{`{"n\u0061me":"x","name":"y"}`, &Fault{Kind: Repeated, Field: "name"}},
		{`{"items":[{"total":1,"total":1}]}`, &Fault{Kind: Repeated, Field: "total"}},
		{`{"count":"1"}`, &Fault{Kind: WrongType, Field: "count", Wants: "integer", Got: "string"}},
		{`{"count":1.5}`, &Fault{Kind: WrongType, Field: "count", Wants: "integer", Got: "number 1.5"}},
		{`{"count":9223372036854775808}`, &Fault{Kind: WrongType, Field: "count", Wants: "integer", Got: "number 9223372036854775808"}},
		{`{"name":5}`, &Fault{Kind: WrongType, Field: "name", Wants: "string", Got: "number"}},
		{`{"force":"yes"}`, &Fault{Kind: WrongType, Field: "force", Wants: "boolean", Got: "string"}},
		{`{"items":{}}`, &Fault{Kind: WrongType, Field: "items", Wants: "array", Got: "object"}},
		{`{"rest":[]}`, &Fault{Kind: WrongType, Field: "rest", Wants: "object", Got: "array"}},
		{`{"items":[{"total":true}]}`, &Fault{Kind: WrongType, Field: "items.total", Wants: "integer", Got: "bool"}},
		{`{"name":` + strings.Repeat("[", 16) + strings.Repeat("]", 16) + `}`, &Fault{Kind: TooDeep}},
	} {
		got := Decode([]byte(c.body), &outer{})
		if got != nil {
			got.Err = nil
		}
		if (got == nil) != (c.want == nil) || got != nil && *got != *c.want {
			t.Errorf("%q: got %+v, want %+v", c.body, got, c.want)
		}
	}
}

func TestIs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		header http.Header
		want   bool
	}{
		{http.Header{"Content-Type": {"application/json"}}, true},
		{http.Header{"Content-Type": {"Application/JSON; charset=\"UTF-8\""}}, true},
		{http.Header{"Content-Type": {"application/json; charset=gbk"}}, false},
		{http.Header{"Content-Type": {"application/json", "text/plain"}}, false},
		{http.Header{"Content-Type": {"application/json", "application/json"}}, false},
		{http.Header{"Content-Type": {"application/json"}, "Content-Encoding": {"gzip"}}, false},
		{http.Header{"Content-Type": {"application/json"}, "Content-Encoding": {"", "gzip"}}, false},
		{http.Header{"Content-Type": {"text/plain"}}, false},
		{http.Header{"Content-Type": {";"}}, false},
		{http.Header{}, false},
	} {
		if got := Is(c.header); got != c.want {
			t.Errorf("%v: %t", c.header, got)
		}
	}
}

// timeout is an error of a connection whose time is over, as some wrap it.
type timeout struct{}

func (timeout) Error() string   { return "too slow" }
func (timeout) Timeout() bool   { return true }
func (timeout) Temporary() bool { return false }

func TestRead(t *testing.T) {
	t.Parallel()
	half := strings.NewReader(`{"a`)
	for name, c := range map[string]struct {
		body   io.Reader
		length int64
		want   Kind
		close  bool
	}{
		"whole":         {strings.NewReader(`{}`), 2, 0, false},
		"as long":       {strings.NewReader(strings.Repeat(" ", 10)), -1, 0, false},
		"announced":     {iotest.ErrReader(errors.New("it is read")), 11, TooLarge, true},
		"longer":        {strings.NewReader(strings.Repeat(" ", 11)), -1, TooLarge, true},
		"longer before": {iotest.ErrReader(fmt.Errorf("too long: %w", &http.MaxBytesError{Limit: 5})), -1, TooLarge, true},
		"stalled":       {io.MultiReader(half, iotest.ErrReader(fmt.Errorf("the body: %w", os.ErrDeadlineExceeded))), 9, Stalled, true},
		"stalled too":   {iotest.ErrReader(timeout{}), 9, Stalled, true},
		"cut short":     {iotest.ErrReader(io.ErrUnexpectedEOF), 9, Broken, true},
	} {
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(t.Context(), "POST", "/", nil)
		r.Body, r.ContentLength = io.NopCloser(c.body), c.length
		body, f := Read(w, r, 10)
		switch {
		case c.want == 0 && (f != nil || body == nil):
			t.Errorf("%s: %v", name, f)
		case c.want != 0 && (f == nil || f.Kind != c.want || body != nil || f.Error() == ""):
			t.Errorf("%s: got %+v, want kind %d", name, f, c.want)
		case (w.Header().Get("Connection") == "close") != c.close:
			t.Errorf("%s: Connection %q", name, w.Header().Get("Connection"))
		}
	}
}

// FuzzDecode: what is taken means the same to the standard library, and is taken again when it is written anew.
func FuzzDecode(f *testing.F) {
	for _, body := range []string{`{"name":"t","count":1}`, `{}`, `{"name":"t","name":"t"}`, `{"count":1e3}`, `[`, `{"rest":{}}`, "{\"name\":\"\xff\"}", `{"items":[{"total":1},{}]}`} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var got, plain, again outer
		if f := Decode(body, &got); f != nil {
			if f.Kind <= Broken || f.Kind > Trailing {
				t.Fatalf("%q: %+v", body, f)
			}
			return
		}
		if err := json.Unmarshal(body, &plain); err != nil || !reflect.DeepEqual(got, plain) {
			t.Fatalf("%q: got %+v; the standard library has %+v, %v", body, got, plain, err)
		}
		text, err := json.Marshal(&got)
		if err != nil {
			t.Fatal(err)
		}
		if f := Decode(text, &again); f != nil || !reflect.DeepEqual(got, again) {
			t.Fatalf("%q became %q: %+v", body, text, f)
		}
	})
}
