// Package redisserver runs a Redis of the program's own, for demonstrations: on loopback with a password, its data in a
// temporary folder, and every write in the append-only file before it is answered, so that what was answered outlives
// SIGKILL. It can be killed, paused, emptied and started again. It is ended by its handle, and on Linux also by the kernel
// when the program dies.
package redisserver
