// Package credential reads the values that a policy takes out of what a client sends: a claim of a signed token, the value
// of a signed cookie, a field of a JSON body. It is pure: it reads no file and has no clock.
//
// All of it is written for input that somebody chose in order to be counted as somebody else, or as nobody. What is not
// exactly right is missing, which is a value that policies know how to treat; nothing here fails, and nothing is corrected.
// An empty value is missing too. Where two readers of the same bytes could find different values (a key that is there
// twice, an escape that stands for nothing), there is none: a limit that counts another value than the service uses is no
// limit.
//
// Everything is safe for concurrent use.
package credential
