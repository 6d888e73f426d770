package replay

import (
	"strings"
	"testing"
	"time"
)

const at2000 = "10/Oct/2000:13:55:36 -0700"

// flat is what a line says, in one text.
func flat(e *entry) string {
	var b strings.Builder
	b.WriteString(timeOf(e.at).Format(time.RFC3339Nano))
	for _, part := range []string{e.method, e.host, e.path, e.query, e.client, e.user} {
		b.WriteString("|" + part)
	}
	b.WriteString("|" + itoa(int64(e.status)) + "|" + itoa(e.bytes))
	for _, f := range e.fields {
		kind := "header "
		if f.dimension {
			kind = "dim "
		}
		b.WriteString("|" + kind + f.name + "=" + f.value)
	}
	return b.String()
}

func itoa(n int64) string { return strings.ReplaceAll(grouped(n), ",", "") }

func TestTextLines(t *testing.T) {
	t.Parallel()
	const when = "2000-10-10T20:55:36Z|"
	for name, c := range map[string]struct {
		line, want string
		problem    problem
		format     string
	}{
		"common": {line: `192.0.2.7 - - [` + at2000 + `] "GET /a?b=c HTTP/1.0" 200 2326`, want: when + "GET||/a|b=c|192.0.2.7||200|2326", format: "common"},
		"combined": {line: `192.0.2.7 - frank [` + at2000 + `] "GET / HTTP/1.1" 200 5 "http://shop.example/" "Mozilla/5.0 (X11; Linux)"`,
			want: when + "GET||/||192.0.2.7|frank|200|5|header Referer=http://shop.example/|header User-Agent=Mozilla/5.0 (X11; Linux)", format: "combined"},
		"request time and more behind": {line: `192.0.2.7 - - [` + at2000 + `] "GET / HTTP/2.0" 200 5 "-" "curl/8" 0.012 "203.0.113.9" upstream=0.01`,
			want: when + "GET||/||192.0.2.7||200|5|header User-Agent=curl/8", format: "combined"},
		"number behind common": {line: `192.0.2.7 - - [` + at2000 + `] "GET / HTTP/2.0" 200 5 0.012`, want: when + "GET||/||192.0.2.7||200|5", format: "common"},
		"host before": {line: `Shop.Example:443 192.0.2.7 - - [` + at2000 + `] "GET / HTTP/1.1" 200 5 "-" "-"`,
			want: when + "GET|shop.example|/||192.0.2.7||200|5", format: "combined with host"},
		"address as host before": {line: `198.51.100.1:80 192.0.2.7 - - [` + at2000 + `] "GET / HTTP/1.1" 200 5`, want: when + "GET|198.51.100.1|/||192.0.2.7||200|5", format: "common with host"},
		"IPv6":                   {line: `2001:db8::7 - - [` + at2000 + `] "GET / HTTP/1.1" 304 -`, want: when + "GET||/||2001:db8::7||304|0"},
		"IPv6 host before":       {line: `[2001:db8::1]:443 2001:db8::7 - - [` + at2000 + `] "GET / HTTP/1.1" 304 -`, want: when + "GET|2001:db8::1|/||2001:db8::7||304|0"},
		"a name as client":       {line: `host.example - - [` + at2000 + `] "GET / HTTP/1.1" 200 1`, want: when + "GET||/||host.example||200|1"},
		"user with blanks":       {line: `192.0.2.7 - John Q. Doe [` + at2000 + `] "GET / HTTP/1.1" 200 1`, want: when + "GET||/||192.0.2.7|John Q. Doe|200|1"},
		"user with a false time": {line: `192.0.2.7 - x [01/Jan/2090:00:00:00 +0000] y [` + at2000 + `] "GET / HTTP/1.1" 200 1`,
			want: when + "GET||/||192.0.2.7|x [01/Jan/2090:00:00:00 +0000] y|200|1"},
		"escaped by Apache": {line: `192.0.2.7 - a\"b [` + at2000 + `] "GET /x\"y\\z HTTP/1.1" 200 1 "-" "a \"quoted\" \t agent"`,
			want: when + "GET||/x%22y/z||192.0.2.7|a\"b|200|1|header User-Agent=a \"quoted\" \t agent"},
		"escaped by nginx": {line: `192.0.2.7 - a\x22b [` + at2000 + `] "GET /\xE4\xB8\xAD HTTP/1.1" 200 1 "-" "\x22quoted\x22 \x5C"`,
			want: when + "GET||/%E4%B8%AD||192.0.2.7|a\"b|200|1|header User-Agent=\"quoted\" \\"},
		"whole URL":           {line: `192.0.2.7 - - [` + at2000 + `] "GET http://Shop.example:8080/p?q HTTP/1.1" 200 1`, want: when + "GET|shop.example|/p|q|192.0.2.7||200|1"},
		"path is cleaned":     {line: `192.0.2.7 - - [` + at2000 + `] "GET //a/./b/../%7e HTTP/1.1" 200 1`, want: when + "GET||/a/~||192.0.2.7||200|1"},
		"HTTP/0.9":            {line: `192.0.2.7 - - [` + at2000 + `] "GET /" 200 1`, want: when + "GET||/||192.0.2.7||200|1"},
		"trailing blank":      {line: `192.0.2.7 - - [` + at2000 + `] "GET / HTTP/1.1" 200 1 `, want: when + "GET||/||192.0.2.7||200|1"},
		"TLS on a plain port": {line: `192.0.2.7 - - [` + at2000 + `] "\x16\x03\x01\x02\x00" 400 150 "-" "-"`, problem: notHTTP},
		"no request":          {line: `192.0.2.7 - - [` + at2000 + `] "-" 408 0 "-" "-"`, problem: notHTTP},
		"empty request":       {line: `192.0.2.7 - - [` + at2000 + `] "" 400 0`, problem: notHTTP},
		"CONNECT":             {line: `192.0.2.7 - - [` + at2000 + `] "CONNECT shop.example:443 HTTP/1.1" 405 0`, problem: notHTTP},
		"bad escape in path":  {line: `192.0.2.7 - - [` + at2000 + `] "GET /%zz HTTP/1.1" 400 0`, problem: notHTTP},
		"empty":               {line: ``, problem: noRequest},
		"prose":               {line: `the quick brown fox`, problem: noRequest},
		"no time":             {line: `192.0.2.7 - - "GET / HTTP/1.1" 200 1`, problem: noTime},
		"bad time":            {line: `192.0.2.7 - - [10/Foo/2000:13:55:36 -0700] "GET / HTTP/1.1" 200 1`, problem: badTime},
		"year 0001":           {line: `192.0.2.7 - - [10/Oct/0001:13:55:36 -0700] "GET / HTTP/1.1" 200 1`, problem: timeRange},
		"open quote":          {line: `192.0.2.7 - - [` + at2000 + `] "GET / HTTP/1.1 200 1`, problem: noRequest},
		"no status":           {line: `192.0.2.7 - - [` + at2000 + `] "GET / HTTP/1.1"`, problem: badStatus},
		"status of a word":    {line: `192.0.2.7 - - [` + at2000 + `] "GET / HTTP/1.1" OK 1`, problem: badStatus},
		"status of 4 digits":  {line: `192.0.2.7 - - [` + at2000 + `] "GET / HTTP/1.1" 2000 1`, problem: badStatus},
		"no size":             {line: `192.0.2.7 - - [` + at2000 + `] "GET / HTTP/1.1" 200`, problem: badBytes},
		"size of a word":      {line: `192.0.2.7 - - [` + at2000 + `] "GET / HTTP/1.1" 200 lots`, problem: badBytes},
		"no client":           {line: `- - - [` + at2000 + `] "GET / HTTP/1.1" 200 1`, problem: noClient},
	} {
		var p ncsa
		e := &entry{}
		e.reset()
		got := p.parse(c.line, e)
		if got != c.problem || (got == fine && flat(e) != c.want) {
			t.Errorf("%s: got %q, %s\nwant %q, %s", name, got, flat(e), c.problem, c.want)
		}
		if c.format != "" && p.format() != c.format {
			t.Errorf("%s: format %s, want %s", name, p.format(), c.format)
		}
	}
}

func TestJSONLines(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fields, line, want string
		problem            problem
	}{
		"headgate": {line: `{"time":"2026-01-01T00:00:01.5+08:00","level":"INFO","msg":"request","method":"POST","host":"shop.example:8080","path":"/login","peer":"10.0.0.1","proto":"HTTP/1.1","status":401,"bytes":12,"duration":500000000,"upstream":1,"verdict":"allow","rule":"","id":"x","client":"192.0.2.7"}`,
			want: "2025-12-31T16:00:01Z|POST|shop.example|/login||192.0.2.7||401|12"},
		"nginx": {line: `{"time_local":"` + at2000 + `","remote_addr":"192.0.2.7","remote_user":"-","request":"GET /a?b HTTP/1.1","status":"200","body_bytes_sent":"5","http_user_agent":"x","request_time":"0.250"}`,
			want: "2000-10-10T20:55:35.75Z|GET||/a|b|192.0.2.7||200|5|header User-Agent=x"},
		"nginx msec": {line: `{"msec":"1767225600.123","remote_addr":"2001:db8::7","request_method":"GET","uri":"/index.html","request_uri":"/?x=1","status":200}`,
			want: "2026-01-01T00:00:00.123Z|GET||/|x=1|2001:db8::7||200|0"},
		"Caddy": {line: `{"level":"info","ts":1767225600.5,"logger":"http.log.access","msg":"handled request","request":{"remote_ip":"192.0.2.1","remote_port":"1","client_ip":"192.0.2.7","proto":"HTTP/2.0","method":"GET","host":"shop.example","uri":"/x?y","headers":{"User-Agent":["curl/8"],"Accept":["*/*"]}},"bytes_read":0,"user_id":"","duration":0.5,"size":7,"status":200}`,
			want: "2026-01-01T00:00:00Z|GET|shop.example|/x|y|192.0.2.7||200|7|header User-Agent=curl/8"},
		"Traefik": {line: `{"ClientHost":"192.0.2.7","ClientUsername":"-","DownstreamStatus":200,"DownstreamContentSize":9,"Duration":1000000,"RequestHost":"shop.example","RequestMethod":"GET","RequestPath":"/p?q","time":"2026-01-01T00:00:00Z"}`,
			want: "2025-12-31T23:59:59.999Z|GET|shop.example|/p|q|192.0.2.7||200|9"},
		"milliseconds":      {line: `{"ts":1767225600123,"ip":"192.0.2.7","method":"GET","path":"/"}`, want: "2026-01-01T00:00:00.123Z|GET||/||192.0.2.7||0|0"},
		"nanoseconds":       {line: `{"ts":1767225600123456789,"ip":"192.0.2.7","method":"GET","path":"/"}`, want: "2026-01-01T00:00:00.123456Z|GET||/||192.0.2.7||0|0"},
		"a blank in time":   {line: `{"ts":"2026-01-01 00:00:00","ip":"192.0.2.7","method":"GET","path":"/"}`, want: "2026-01-01T00:00:00Z|GET||/||192.0.2.7||0|0"},
		"address and port":  {line: `{"ts":1767225600,"ip":"192.0.2.7:4711","method":"GET","path":"/"}`, want: "2026-01-01T00:00:00Z|GET||/||192.0.2.7:4711||0|0"},
		"mapped":            {fields: "time=when,ip=a.b,method=m,path=p,user=u,header.x-app=app,dim.tier=t", line: `{"when":1767225600,"a":{"b":"192.0.2.7"},"m":"GET","p":"/","u":"u1","app":"shop","t":"vip","path":"/no","user":"no"}`, want: "2026-01-01T00:00:00Z|GET||/||192.0.2.7|u1|0|0|header X-App=shop|dim tier=vip"},
		"the first of two":  {fields: "ip=a,ip=b", line: `{"ts":1767225600,"b":"192.0.2.8","a":"192.0.2.7","method":"GET","path":"/"}`, want: "2026-01-01T00:00:00Z|GET||/||192.0.2.7||0|0"},
		"or the second":     {fields: "ip=a,ip=b", line: `{"ts":1767225600,"b":"192.0.2.8","a":"-","method":"GET","path":"/"}`, want: "2026-01-01T00:00:00Z|GET||/||192.0.2.8||0|0"},
		"null":              {line: `{"ts":1767225600,"user":null,"bytes":null,"ip":"192.0.2.7","method":"GET","path":"/"}`, want: "2026-01-01T00:00:00Z|GET||/||192.0.2.7||0|0"},
		"array":             {line: `[1,2]`, problem: notJSON},
		"cut off":           {line: `{"ts":1767225600,"ip":"192.0.2`, problem: notJSON},
		"rubbish behind":    {line: `{"ts":1767225600} x`, problem: notJSON},
		"no time":           {line: `{"ip":"192.0.2.7","method":"GET","path":"/"}`, problem: jsonTime},
		"bad time":          {line: `{"ts":"yesterday","ip":"192.0.2.7","method":"GET","path":"/"}`, problem: jsonBadTime},
		"far time":          {line: `{"ts":1e300,"ip":"192.0.2.7","method":"GET","path":"/"}`, problem: timeRange},
		"no method":         {line: `{"ts":1767225600,"ip":"192.0.2.7","path":"/"}`, problem: jsonMethod},
		"no path":           {line: `{"ts":1767225600,"ip":"192.0.2.7","method":"GET"}`, problem: jsonPath},
		"no client":         {line: `{"ts":1767225600,"method":"GET","path":"/"}`, problem: jsonClient},
		"status of a word":  {line: `{"ts":1767225600,"ip":"192.0.2.7","method":"GET","path":"/","status":"ok"}`, problem: jsonStatus},
		"path is no path":   {line: `{"ts":1767225600,"ip":"192.0.2.7","method":"GET","path":"x"}`, problem: notHTTP},
		"method is no word": {line: `{"ts":1767225600,"ip":"192.0.2.7","method":"G T","path":"/"}`, problem: notHTTP},
	} {
		fields, err := ParseFields(c.fields)
		if err != nil {
			t.Fatal(err)
		}
		p := jsonLine{table: fields.table()}
		e := &entry{}
		e.reset()
		got := p.parse(c.line, e)
		if got != c.problem || (got == fine && flat(e) != c.want) {
			t.Errorf("%s: got %q, %s\nwant %q, %s", name, got, flat(e), c.problem, c.want)
		}
	}
}

func TestPeerAlone(t *testing.T) {
	t.Parallel()
	fields, err := ParseFields("peer=remote_addr,header.X-Forwarded-For=xff")
	if err != nil {
		t.Fatal(err)
	}
	p := jsonLine{table: fields.table()}
	e := &entry{}
	e.reset()
	line := `{"ts":1767225600,"remote_addr":"10.0.0.1","xff":"192.0.2.7","ip":"203.0.113.1","method":"GET","path":"/"}`
	if what := p.parse(line, e); what != fine || !e.addrIsPeer || e.client != "10.0.0.1" || len(e.fields) != 1 {
		t.Errorf("%q: %+v", what, e)
	}
}

func TestFieldsErrors(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"time":       `"time" is not WORD=FIELD`,
		"time=":      `"time=" is not WORD=FIELD`,
		"times=ts":   `"times" is unknown; the words are time, ip`,
		"header.=x":  `"header." is unknown`,
		"ip=a,,ip=a": `"ip=a" stands twice`,
	} {
		if _, err := ParseFields(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	if f, err := ParseFields(" dim.tier = t ,dim.user=u"); err != nil || strings.Join(f.Dimensions(), " ") != "tier user" {
		t.Errorf("%v, %v", f.Dimensions(), err)
	}
}
