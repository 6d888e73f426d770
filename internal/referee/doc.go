// Package referee judges from the outside what limiters have admitted. It is told of every admission with its time, and says
// by the words of the limit alone which of them the limit had no room for: a bucket over all intervals, a window by window,
// a log and cells over every period, a concurrency by what was in flight. It knows nothing of how a limiter counts, stores or
// shares, imports no algorithm, and computes in integers of any size.
//
// A [Judge] judges one limit on one key. A [Book] keeps the admissions of many until they are judged. [Moment] finds when an
// admission was decided.
package referee
