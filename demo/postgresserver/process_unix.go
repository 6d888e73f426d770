//go:build unix

package postgresserver

import (
	"errors"
	"fmt"
	"os"
	osuser "os/user"
	"strconv"
	"syscall"
)

// account is whom the server runs as, nil for whoever runs the program.
type account struct{ uid, gid int }

// unprivileged returns another account if the program runs as root, which a PostgreSQL refuses to.
func unprivileged() (*account, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := osuser.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.Atoi(u.Uid)
		gid, err2 := strconv.Atoi(u.Gid)
		if errors.Join(err1, err2) == nil {
			return &account{uid, gid}, nil
		}
	}
	return nil, errors.New("PostgreSQL does not run as root, and there is neither an account postgres nor nobody; run the demo as another user")
}

// own makes the account the owner of a file or folder.
func (a *account) own(path string) error {
	if a == nil {
		return nil
	}
	if err := os.Chown(path, a.uid, a.gid); err != nil {
		return fmt.Errorf("PostgreSQL cannot be given its folder: %w", err)
	}
	return nil
}

// common keeps the signals of the terminal from the process, and has it run as the account.
func common(a *account) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setpgid: true}
	if a != nil {
		attr.Credential = &syscall.Credential{Uid: uint32(a.uid), Gid: uint32(a.gid)}
	}
	return attr
}

// stop ends it in order, whoever is connected.
func stop(p *os.Process) error { return p.Signal(syscall.SIGINT) }
