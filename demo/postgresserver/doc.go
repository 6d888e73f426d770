// Package postgresserver runs a PostgreSQL of the program's own, for demonstrations: on loopback with a password, its data in a temporary
// folder, with durable commits as it comes. It is ended by its handle, and on Linux also by the kernel when the program dies.
package postgresserver
