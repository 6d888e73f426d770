// Package demo is a sample shop with a sale, and the crowd that comes to it: shoppers who think, hesitate and click
// again, and a bot farm that does not. The crowd comes over real HTTP, through the real gateway, under a real policy;
// everything runs in this process and ends with its context.
//
// [Run] does all of it and returns a [Summary]. What is random is drawn from a seed; what is measured depends on the
// machine.
package demo
