//go:build unix

package app

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// checkPrivate refuses a folder that others can use, or that belongs to somebody else.
func checkPrivate(folder string, info fs.FileInfo) error {
	if owner, ok := info.Sys().(*syscall.Stat_t); ok && int(owner.Uid) != os.Getuid() {
		return fmt.Errorf("%s belongs to another user", folder)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("%s can be used by others (mode %#o); it should have mode 0700", folder, info.Mode().Perm())
	}
	return nil
}

// checkOwnWrites refuses a file that others can write: whoever can would let themselves in.
func checkOwnWrites(info fs.FileInfo) error {
	if owner, ok := info.Sys().(*syscall.Stat_t); ok && owner.Uid != 0 && int(owner.Uid) != os.Getuid() {
		return errors.New("it belongs to another user")
	}
	if info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("others can write it (mode %#o); it should have mode 0600", info.Mode().Perm())
	}
	return nil
}
