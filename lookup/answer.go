package lookup

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"
)

// readAnswer returns the value in the body of a 200, and closes it.
func readAnswer(resp *http.Response, jsonField string) (string, bool, error) {
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	switch coding := resp.Header.Get("Content-Encoding"); {
	case err != nil:
		return "", false, fmt.Errorf("reading the body: %w", err)
	case len(body) > maxBody:
		return "", false, fmt.Errorf("the body has more than %d bytes", maxBody)
	case coding != "" && !strings.EqualFold(coding, "identity"):
		return "", false, errors.New("the body is encoded, though that was not asked for")
	case !utf8.Valid(body):
		return "", false, errors.New("the body is no UTF-8 text")
	case jsonField == "":
		return strings.TrimSpace(string(body)), true, nil
	}
	return jsonValue(body, jsonField)
}

// jsonValue returns the value of a field by its dotted path. Its errors do not quote the document.
func jsonValue(doc []byte, path string) (string, bool, error) {
	if !json.Valid(doc) {
		return "", false, errors.New("the body is no JSON")
	}
	raw := bytes.TrimSpace(doc)
	done := 0
	for part := range strings.SplitSeq(path, ".") {
		inner, err := member(raw, part)
		if err != nil {
			return "", false, fmt.Errorf("there is no field %q: %s %w", path, place(path[:done]), err)
		}
		if raw = bytes.TrimSpace(inner); len(raw) == 0 || raw[0] == 'n' {
			return "", false, nil
		}
		done = min(done+len(part)+1, len(path))
	}
	switch raw[0] {
	case '{', '[':
		return "", false, fmt.Errorf("the field %q is an object or a list; name a field inside", path)
	case '"':
		var text string
		err := json.Unmarshal(raw, &text)
		return text, err == nil, err
	}
	return string(raw), true, nil
}

// place names what a path leads to.
func place(path string) string {
	if path == "" {
		return "the body"
	}
	return strconv.Quote(strings.TrimSuffix(path, "."))
}

// member returns a part of an object or a list, nil if there is none.
func member(raw json.RawMessage, name string) (json.RawMessage, error) {
	switch {
	case len(raw) > 0 && raw[0] == '{':
		var fields map[string]json.RawMessage
		err := json.Unmarshal(raw, &fields)
		return fields[name], err
	case len(raw) > 0 && raw[0] == '[':
		i, err := strconv.Atoi(name)
		if err != nil || i < 0 || strconv.Itoa(i) != name {
			return nil, errors.New("is a list; name a member by its number, from 0")
		}
		var members []json.RawMessage
		if err := json.Unmarshal(raw, &members); err != nil || i >= len(members) {
			return nil, err
		}
		return members[i], nil
	case len(raw) > 0 && raw[0] == 'n':
		return nil, nil
	}
	return nil, errors.New("is neither an object nor a list")
}
