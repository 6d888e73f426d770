package testlang

import (
	"net/http"
	"net/netip"
	"strconv"
	"strings"
)

const requestOptions = "peer=, ip=, user=, dim.NAME=, header.NAME=, cookie.NAME=, body=, host=, response=, response.bytes=, response.after= or response.header.NAME="

// requestOf reads METHOD TARGET and its options.
func requestOf(words []word) (Request, error) {
	if len(words) < 2 || !isMethod(words[0].plain) {
		return Request{}, faultf(words[0].column, "a policy judges requests: write a method in capitals and a path, as in GET /feed user=u1")
	}
	if !strings.HasPrefix(words[1].plain, "/") && words[1].plain != "*" {
		return Request{}, faultf(words[1].column, "%q is not a path: begin it with /", words[1].plain)
	}
	r := Request{
		Method: words[0].plain, Target: words[1].plain, Host: "localhost",
		Peer: netip.AddrFrom4([4]byte{192, 0, 2, 1}), Header: http.Header{},
		Dimensions: map[string]string{}, Response: http.StatusOK, ResponseHeader: http.Header{},
	}
	seen := map[string]bool{}
	for i := range words[2:] {
		w := &words[2+i]
		name, value, ok := w.option()
		if !ok {
			return Request{}, faultf(w.column, "%q is not known here: write %s", w.raw, requestOptions)
		}
		// A header can come in several lines; anything else has one value.
		if seen[name] && !strings.HasPrefix(name, "header.") && !strings.HasPrefix(name, "response.header.") {
			return Request{}, faultf(w.column, "%s= stands twice", name)
		}
		seen[name] = true
		if err := r.set(w.column, name, value); err != nil {
			return Request{}, err
		}
	}
	return r, nil
}

func isMethod(s string) bool {
	return s != "" && strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ-") == ""
}

func (r *Request) set(column int, name, value string) error {
	kind, sub, _ := strings.Cut(name, ".")
	switch name {
	case "peer":
		return r.setPeer(column, value)
	case "ip":
		return r.setIP(column, value)
	case "user":
		r.Dimensions["user"] = value
		return nil
	case "body":
		r.Body = value
		return nil
	case "host":
		r.Host = value
		return nil
	case "response":
		return r.setResponse(column, value)
	}
	switch {
	case kind == "response":
		return r.setResponsePart(column, sub, value)
	case sub == "" || kind != "dim" && kind != "header" && kind != "cookie":
		return faultf(column, "%s= is not known here: write %s", name, requestOptions)
	case kind == "dim":
		r.Dimensions[sub] = value
	case kind == "header":
		r.Header.Add(sub, value)
	case kind == "cookie":
		r.addCookie(sub, value)
	}
	return nil
}

func (r *Request) setIP(column int, value string) error {
	addr, err := netip.ParseAddr(value)
	if err != nil {
		return faultf(column, "ip=%s is not an address: write one as in ip=198.51.100.9", value)
	}
	r.Dimensions["ip"] = addr.String()
	return nil
}

func (r *Request) setResponsePart(column int, part, value string) error {
	header, ok := strings.CutPrefix(part, "header.")
	switch {
	case part == "bytes":
		return r.setResponseBytes(column, value)
	case part == "after":
		return r.setResponseAfter(column, value)
	case ok && header != "":
		r.ResponseHeader.Add(header, value)
		return nil
	}
	return faultf(column, "response.%s= is not known here: write %s", part, requestOptions)
}

func (r *Request) setPeer(column int, value string) error {
	addr, err := netip.ParseAddr(value)
	if err != nil {
		return faultf(column, "peer=%s is not an address: write one as in peer=10.0.0.5", value)
	}
	r.Peer = addr.Unmap()
	return nil
}

func (r *Request) setResponse(column int, value string) error {
	status, err := strconv.Atoi(value)
	if err != nil || status < 100 || status > 599 {
		return faultf(column, "response=%s is not a status from 100 to 599", value)
	}
	r.Response = status
	return nil
}

func (r *Request) setResponseBytes(column int, value string) error {
	bytes, err := strconv.ParseInt(value, 10, 64)
	if err != nil || bytes < 0 {
		return faultf(column, "response.bytes=%s is not a number of bytes", value)
	}
	r.ResponseBytes = bytes
	return nil
}

func (r *Request) setResponseAfter(column int, value string) (err error) {
	if r.ResponseAfter, err = offset(column, value); err == nil && r.ResponseAfter < 0 {
		err = faultf(column, "response.after=%s is before the request", value)
	}
	return err
}

// addCookie joins cookies into one header line, as clients send them. The value goes as it is: hostile ones are tested too.
func (r *Request) addCookie(name, value string) {
	line := name + "=" + value
	if before := r.Header.Get("Cookie"); before != "" {
		line = before + "; " + line
	}
	r.Header.Set("Cookie", line)
}
