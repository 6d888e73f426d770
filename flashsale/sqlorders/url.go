package sqlorders

import (
	"net/url"
	"strings"
)

// serverURL is the URL of a server, taken apart.
type serverURL struct {
	*url.URL
	// hosts is HOST:PORT, several with commas, or the path of a socket.
	hosts string
	// socket tells that it is a path: the parameter of that name, which is not among the others any more.
	socket bool
	// parameters are those of the URL.
	parameters url.Values
}

// parseURL parses the URL of a server and says what is missing, without quoting it. A socket is the parameter of that name, an absolute
// path, in place of the host.
func parseURL(cfg *Config, socket string) (*serverURL, error) {
	text, hosts := firstHost(cfg.URL)
	parsed, err := url.Parse(text)
	if err != nil { // the text of err quotes the URL
		return nil, invalidf("sqlorders: Config.URL is not a URL: is a character in the user or password not percent-encoded, or the port not a number?")
	}
	u := &serverURL{URL: parsed, hosts: hosts, parameters: parsed.Query()}
	form := u.Scheme + "://USER:PASSWORD@HOST:PORT/DATABASE"
	if path := u.parameters.Get(socket); u.Host == "" && strings.HasPrefix(path, "/") {
		u.hosts, u.socket = path, true
	}
	switch {
	case u.Opaque != "", !u.socket && u.Hostname() == "":
		return nil, invalidf("sqlorders: Config.URL names no host; it is %s, or, for a socket, %s://USER:PASSWORD@/DATABASE?%s=/PATH", form, u.Scheme, socket)
	case strings.ContainsAny(u.hosts, "()"):
		return nil, invalidf("sqlorders: Config.URL has a bracket in its host; it is %s, or, for a socket, %s://USER:PASSWORD@/DATABASE?%s=/PATH", form, u.Scheme, socket)
	case strings.Contains(u.Path, "@"): // as in u:p@ss/word@h
		return nil, invalidf("sqlorders: Config.URL is not a URL: is a character in the user or password not percent-encoded?")
	case strings.Trim(u.Path, "/") == "" || strings.Contains(strings.TrimPrefix(u.Path, "/"), "/"):
		return nil, invalidf("sqlorders: Config.URL names no database; it is %s", form)
	case u.User.Username() == "":
		return nil, invalidf("sqlorders: Config.URL names no user; it is %s", form)
	}
	return u, nil
}

// where names the database for messages.
func (u *serverURL) where() string { return u.hosts + u.Path }

// firstHost takes the other hosts out of a URL, which net/url would not have there, and returns them all.
func firstHost(text string) (one, hosts string) {
	begin := strings.Index(text, "://") + len("://")
	if begin < len("://") {
		return text, ""
	}
	end := len(text)
	if i := strings.IndexAny(text[begin:], "/?#"); i >= 0 {
		end = begin + i
	}
	begin += strings.LastIndexByte(text[begin:end], '@') + 1
	hosts = text[begin:end]
	first, _, _ := strings.Cut(hosts, ",")
	return text[:begin] + first + text[end:], hosts
}

// Shown is a Config.URL as it may be logged: without its password and its parameters, but for the path of a socket. One in which it cannot be told for
// sure what the password is shows nothing but its scheme.
func Shown(text string) string {
	scheme, _, _ := strings.Cut(text, ":")
	scheme = strings.ToLower(scheme)
	if scheme == "sqlite" {
		return text
	}
	one, hosts := firstHost(text)
	u, err := url.Parse(one)
	if err != nil || u.Opaque != "" || strings.Contains(u.Path+u.RawQuery+u.Fragment, "@") {
		return scheme + "://…"
	}
	socket := ""
	for _, name := range []string{"host", "socket"} {
		if path := u.Query().Get(name); u.Host == "" && strings.HasPrefix(path, "/") {
			socket = "?" + name + "=" + path
		}
	}
	if u.Host == "" && socket == "" {
		return scheme + "://…"
	}
	user := ""
	if u.User != nil {
		user = url.User(u.User.Username()).String() + "@"
	}
	return scheme + "://" + user + hosts + u.EscapedPath() + socket
}
