//go:build !unix

package app

import "io/fs"

// checkPrivate accepts the folder: where there are no modes, a user's temporary folder is the user's.
func checkPrivate(string, fs.FileInfo) error { return nil }

// checkOwnWrites accepts the file, for the same reason.
func checkOwnWrites(fs.FileInfo) error { return nil }
