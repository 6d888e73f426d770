// Package childserver runs a server as a child of this program: on a free port of loopback, with a log of its own, until it is ended by
// its handle. On Linux the kernel ends it too when the program dies. What the server is, and when it is ready, its caller says.
package childserver
