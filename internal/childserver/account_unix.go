//go:build unix

package childserver

import (
	"fmt"
	"os"
	"os/user"
	"strconv"
	"strings"
)

// Account is whom a program runs as. The zero Account is whoever runs this program.
type Account struct {
	other    bool
	uid, gid uint32
}

// Unprivileged returns the first account of these that there is, if this program runs as root, which databases refuse to; else the zero
// Account. Without any of them the error says so.
func Unprivileged(names ...string) (Account, error) {
	if os.Geteuid() != 0 {
		return Account{}, nil
	}
	for _, name := range names {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
		if err1 == nil && err2 == nil {
			return Account{other: true, uid: uint32(uid), gid: uint32(gid)}, nil
		}
	}
	return Account{}, fmt.Errorf("there is no account %s", strings.Join(names, ", nor "))
}

// Own makes the account the owner of a file or folder.
func (a Account) Own(path string) error {
	if !a.other {
		return nil
	}
	return os.Chown(path, int(a.uid), int(a.gid))
}
