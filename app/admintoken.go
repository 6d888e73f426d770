package app

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// tokenFile is a file with a generated token, as long as its listener lives.
type tokenFile struct {
	path string
	info fs.FileInfo
}

// writeToken generates a token and writes it where only this user can read it: to a file of its own name, or in the user's
// folder for such files by the address of the listener, so that several processes do not meet.
func writeToken(file string, listener net.Addr) (token string, f *tokenFile, err error) {
	if file == "" {
		file, err = tokenPath(listener)
	} else {
		err = checkReplaceable(file)
	}
	if err != nil {
		return "", nil, err
	}
	token = rand.Text()
	info, err := replaceFile(file, token+"\n")
	if err != nil {
		return "", nil, err
	}
	return token, &tokenFile{path: file, info: info}, nil
}

// tokenPath returns where the token of a listener lies if nobody has said where: by its port, and by its address too where
// that is not the usual one of loopback.
func tokenPath(listener net.Addr) (string, error) {
	folder, err := tokenFolder()
	if err != nil {
		return "", err
	}
	name, err := tokenName(listener.String())
	return filepath.Join(folder, name), err
}

func tokenName(address string) (string, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", err
	}
	if host != "127.0.0.1" {
		port = strings.NewReplacer(":", "_", "%", "_").Replace(host) + "-" + port
	}
	return "admin-" + port + ".token", nil
}

// LocalAdminToken returns the token that the process which listens at an address of loopback has left for its user, "" if there is none.
func LocalAdminToken(address string) (string, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", err
	}
	if strings.EqualFold(host, "localhost") {
		host = "127.0.0.1"
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() || strings.ContainsAny(port, `/\`) {
		return "", nil
	}
	folder := tokenFolderPath()
	info, err := os.Lstat(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err == nil {
		err = checkPrivate(folder, info)
	}
	if err != nil {
		return "", err
	}
	name, err := tokenName(net.JoinHostPort(host, port))
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile(filepath.Join(folder, name)) // this user has written it
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return strings.TrimSpace(string(text)), err
}

// checkReplaceable refuses to put a file in the place of what is none: who names /dev/stdout does not want that device gone.
func checkReplaceable(file string) error {
	info, err := os.Lstat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil // what else is wrong is seen when it is written
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is there already and is no regular file, and would be replaced; name another file", file)
	}
	return nil
}

// replaceFile writes a file of mode 0600 that is there whole or not at all. It writes through nothing that lies there.
func replaceFile(file, text string) (info fs.FileInfo, err error) {
	f, err := os.CreateTemp(filepath.Dir(file), "."+filepath.Base(file)+".*") // of mode 0600
	if err != nil {
		return nil, err
	}
	_, err = f.WriteString(text)
	if err == nil {
		info, err = f.Stat()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		return nil, errors.Join(err, os.Remove(f.Name()))
	}
	return info, nil
}

// remove takes the file away, if it is still this one: another process may have the port by now.
func (f *tokenFile) remove() error {
	info, err := os.Lstat(f.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !os.SameFile(info, f.info):
		return nil
	}
	return os.Remove(f.path)
}

// tokenFolder returns the folder of this user's token files, and makes it. It must be a folder that nobody else can read or
// has made.
func tokenFolder() (string, error) {
	folder := tokenFolderPath()
	if err := os.Mkdir(folder, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	info, err := os.Lstat(folder)
	switch {
	case err != nil:
		return "", err
	case !info.IsDir():
		return "", fmt.Errorf("%s is not a folder", folder)
	}
	return folder, checkPrivate(folder, info)
}

func tokenFolderPath() string {
	if dir := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "headgate")
	}
	return filepath.Join(os.TempDir(), "headgate-"+strconv.Itoa(os.Getuid()))
}
