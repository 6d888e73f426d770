// Package expr is the expressions of a policy: conditions, costs and dimensions written in CEL, checked and bounded when
// they are loaded, so that what a request can cost is known before the first one comes.
//
// # What an expression reads
//
//	request.method  request.path  request.host  request.ip    text
//	request.bytes                                             length of the body, a whole number
//	request.time                                              a timestamp
//	request.headers["x-app"]  request.cookies["sid"]  request.query["q"]
//	dim.tier  dim["user-id"]                                  a dimension of the policy
//	response.status  response.bytes                           whole numbers
//	response.headers["x-tokens"]
//
// An entry that is missing reads as "", and "x" in request.headers and has(dim.tier) tell whether it is there and not
// empty. Names of headers are in any case. Before there is a response, what is named of it reads as 0 and "". The name of a
// dimension stands in the text: it is never computed, so that it is known at load which dimensions a rule needs. Entries
// are read one by one; nothing goes through all headers.
//
// # What it can do
//
// The operators of CEL, has(), all, exists, exists_one, filter and map over lists, and the functions listed in
// language.go. Left out is what has no use here or no bound: dyn, type, bytes, format, join, comparing whole lists. The
// pattern of matches and the zone of the clock functions are constants, and are compiled when the expression is.
//
// # What it may cost
//
// Every expression has an estimated cost, in steps of very roughly 10 to 50 ns, for inputs as long as they may be
// ([MaxValue]); one above [MaxCost] does not compile. A value longer than that is an error at run time, and so is an
// expression that takes more than MaxCost steps all the same.
package expr
