package app

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/headgate-io/headgate/flashsale/saleadmin"
)

// Bounds of a file of tokens.
const (
	maxTokensFile = 256 << 10
	maxTokens     = 1000
	maxTokenName  = 64
)

// soleName is the name of who has the token of the environment, or the generated one. It is of role admin.
const soleName = "admin"

// settled is how long after its change a file's time tells the next change too.
const settled = 2 * time.Second

// knownToken is a token by its SHA-256, and whose it is.
type knownToken struct {
	sum   [sha256.Size]byte
	actor saleadmin.Actor
}

// adminTokens are the tokens that open the admin listener: one of role admin, and those of a file, which is read again when it changes.
type adminTokens struct {
	sole *knownToken // nil if there is none
	path string      // "" if there is no file
	log  *slog.Logger

	mu      sync.Mutex
	known   []knownToken
	info    fs.FileInfo
	readAt  time.Time
	trouble string // what was logged of the file last
}

func newAdminTokens(sole, path string, log *slog.Logger) *adminTokens {
	a := &adminTokens{path: path, log: log}
	if sole != "" {
		a.sole = &knownToken{sha256.Sum256([]byte(sole)), saleadmin.Actor{Name: soleName, Role: saleadmin.Admin}}
	}
	return a
}

// check reads the file and says what is wrong with it. Once serving, what is wrong opens nothing: see refresh.
func (a *adminTokens) check() error {
	if a.path == "" {
		return nil
	}
	_, _, err := readTokens(a.path)
	if err != nil {
		return usagef("admin: the file of tokens %s cannot be used: %w", a.path, err)
	}
	return nil
}

// who returns whose token a request has.
func (a *adminTokens) who(r *http.Request) (actor saleadmin.Actor, ok bool) {
	lines := r.Header["Authorization"]
	if len(lines) != 1 { // with two, what stands before this listener may have judged the other
		return actor, false
	}
	scheme, token, _ := strings.Cut(lines[0], " ")
	if !strings.EqualFold(scheme, "Bearer") || token == "" {
		return actor, false
	}
	sum := sha256.Sum256([]byte(token))
	known := a.refresh()
	if a.sole != nil && subtle.ConstantTimeCompare(sum[:], a.sole.sum[:]) == 1 {
		actor, ok = a.sole.actor, true
	}
	for i := range known { // all of them, so that the time does not tell which
		if subtle.ConstantTimeCompare(sum[:], known[i].sum[:]) == 1 {
			actor, ok = known[i].actor, true
		}
	}
	return actor, ok
}

// refresh returns the tokens of the file as it is now. One that cannot be read opens nothing, and of one with mistakes the lines without
// one hold: a mistake elsewhere in it must not keep a token alive that was taken out.
func (a *adminTokens) refresh() []knownToken {
	if a.path == "" {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	info, err := os.Stat(a.path)
	if err == nil && a.unchanged(info) {
		return a.known
	}
	var read []knownToken
	a.readAt = time.Now()
	if err == nil {
		read, info, err = readTokens(a.path)
	}
	a.known, a.info = read, info
	a.tell(err)
	return a.known
}

// unchanged reports whether the file is as it was read. One that was written just before it was read may have been written again since,
// within what its file system can tell apart.
func (a *adminTokens) unchanged(info fs.FileInfo) bool {
	return a.info != nil && os.SameFile(info, a.info) && info.Size() == a.info.Size() && info.ModTime().Equal(a.info.ModTime()) &&
		info.Mode() == a.info.Mode() && a.readAt.Sub(info.ModTime()) > settled
}

// tell logs what is wrong with the file, once, and how many tokens it has when that is over.
func (a *adminTokens) tell(err error) {
	trouble := ""
	if err != nil {
		trouble = err.Error()
	}
	if trouble == a.trouble {
		return
	}
	if a.trouble = trouble; err == nil {
		a.log.Info("the file of admin tokens is good again", "file", a.path, "tokens", len(a.known))
		return
	}
	a.log.Error("the file of admin tokens has mistakes; only the lines without one open the admin listener", "file", a.path, "tokens", len(a.known), "error", err)
}

// readTokens reads the lines of a file that are good, and says what is wrong with the others.
func readTokens(path string) ([]knownToken, fs.FileInfo, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, fileError(err)
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, nil, fileError(err)
	case !info.Mode().IsRegular():
		return nil, info, errors.New("it is no regular file")
	}
	if err := checkOwnWrites(info); err != nil {
		return nil, info, err
	}
	text, err := io.ReadAll(io.LimitReader(f, maxTokensFile+1))
	switch {
	case err != nil:
		return nil, info, fileError(err)
	case len(text) > maxTokensFile:
		return nil, info, fmt.Errorf("it has more than %d bytes", maxTokensFile)
	}
	tokens, err := parseTokens(text)
	return tokens, info, err
}

// fileError is an error without the name of the file, which the caller says.
func fileError(err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return path.Err
	}
	return err
}

// parseTokens reads lines of "role name sha256". Empty lines and those that begin with # are for people.
func parseTokens(text []byte) (tokens []knownToken, err error) {
	lines := bufio.NewScanner(bytes.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		token, problem := parseToken(line)
		switch {
		case problem != nil:
			err = errors.Join(err, fmt.Errorf("line %d: %w", n, problem))
		case len(tokens) == maxTokens:
			return tokens, errors.Join(err, fmt.Errorf("line %d: there are more than %d tokens", n, maxTokens))
		default:
			tokens = append(tokens, token)
		}
	}
	return tokens, errors.Join(err, lines.Err())
}

// parseToken does not quote the line: who pastes the token itself into the file has not told it to the log.
func parseToken(line string) (t knownToken, err error) {
	fields := strings.Fields(line)
	if len(fields) != 3 {
		return t, fmt.Errorf("it has %d words; write ROLE NAME SHA256, as headgate admin token prints it", len(fields))
	}
	if t.actor.Role, err = saleadmin.ParseRole(fields[0]); err != nil {
		return t, errors.New("the first word is no role; write viewer, operator or admin")
	}
	if err := checkTokenName(fields[1]); err != nil {
		return t, err
	}
	t.actor.Name = fields[1]
	sum, err := hex.DecodeString(fields[2])
	if err != nil || len(sum) != sha256.Size {
		return t, errors.New("the third word is not the SHA-256 of a token in 64 hexadecimal digits")
	}
	copy(t.sum[:], sum)
	return t, nil
}

func checkTokenName(name string) error {
	isOther := func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && !strings.ContainsRune("._@+-", r)
	}
	switch {
	case name == "" || len(name) > maxTokenName || strings.ContainsFunc(name, isOther):
		return fmt.Errorf("a token's name has 1 to %d letters, digits and . _ @ + -", maxTokenName)
	case name == soleName:
		return fmt.Errorf("the name %s is that of the token in HEADGATE_ADMIN_TOKEN; give this one another", soleName)
	}
	return nil
}

// NewAdminToken returns a fresh token for somebody, and the line for the file that HEADGATE_ADMIN_TOKENS names.
func NewAdminToken(role, name string) (token, line string, err error) {
	r, err := saleadmin.ParseRole(role)
	if err != nil {
		return "", "", &UsageError{err}
	}
	if err := checkTokenName(name); err != nil {
		return "", "", &UsageError{err}
	}
	token = rand.Text()
	sum := sha256.Sum256([]byte(token))
	return token, r.String() + " " + name + " " + hex.EncodeToString(sum[:]), nil
}

type actorKey struct{}

// AdminActor returns who makes a request of the admin listener.
func AdminActor(r *http.Request) (saleadmin.Actor, bool) {
	actor, ok := r.Context().Value(actorKey{}).(saleadmin.Actor)
	return actor, ok
}

func withActor(ctx context.Context, actor saleadmin.Actor) context.Context {
	return context.WithValue(ctx, actorKey{}, actor)
}
