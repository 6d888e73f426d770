// Headgate decides how much of a flood gets in. See headgate --help.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	_ "time/tzdata" // calendar windows need zones, and small images have none
)

func main() {
	os.Exit(run(context.Background(), os.Args[1:], streams{in: os.Stdin, out: os.Stdout, err: os.Stderr}))
}

// untilSignal returns a context that ends with the first signal that asks to end in order. The second, for which there is
// no handler any more, ends the process at once. Commands call it when they have something to end in order: one that waits
// for a file must end with the first.
func untilSignal(parent context.Context) context.Context {
	ctx, cancel := context.WithCancel(parent)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		signal.Stop(signals)
		cancel()
	}()
	return ctx
}
