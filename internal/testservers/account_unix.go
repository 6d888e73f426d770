//go:build unix

package testservers

import (
	"fmt"
	"os"
	"os/user"
	"strconv"
	"syscall"
)

// unprivileged returns the first of these accounts that there is, where the test runs as root, which a database refuses to. Elsewhere
// it returns "".
func unprivileged(accounts ...string) string {
	if os.Geteuid() != 0 {
		return ""
	}
	for _, name := range accounts {
		if _, err := user.Lookup(name); err == nil {
			return name
		}
	}
	return ""
}

func runAs(a *syscall.SysProcAttr, account string) error {
	if account == "" {
		return nil
	}
	uid, gid, err := ids(account)
	if err != nil {
		return err
	}
	a.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	return nil
}

// giveTo makes an account the owner of a file or folder.
func giveTo(account, path string) error {
	if account == "" {
		return nil
	}
	uid, gid, err := ids(account)
	if err != nil {
		return err
	}
	if err := os.Chown(path, uid, gid); err != nil {
		return fmt.Errorf("testservers: %w", err)
	}
	return nil
}

func ids(account string) (uid, gid int, err error) {
	u, err := user.Lookup(account)
	if err != nil {
		return 0, 0, fmt.Errorf("testservers: %w", err)
	}
	if uid, err = strconv.Atoi(u.Uid); err != nil {
		return 0, 0, fmt.Errorf("testservers: %w", err)
	}
	if gid, err = strconv.Atoi(u.Gid); err != nil {
		return 0, 0, fmt.Errorf("testservers: %w", err)
	}
	return uid, gid, nil
}
