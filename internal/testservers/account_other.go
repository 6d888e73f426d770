//go:build !unix

package testservers

import "syscall"

func unprivileged(...string) string { return "" }

func runAs(*syscall.SysProcAttr, string) error { return nil }

func giveTo(string, string) error { return nil }
