// Command inbox is a service that reads the events of a sale: a warehouse that counts, in a SQLite of its own, the units that are paid
// for and have to be packed, and keeps where every reservation stands.
//
//	go run ./examples/inbox -nats nats://127.0.0.1:4222 -db warehouse.db
//
// A sale publishes its events with package natsrelay, which can make the stream. Three things make that a message has one effect
// here, whatever comes twice, late or out of order, and whenever this program is killed:
//
//   - The count is raised in the transaction that notes the event's id (inbox.Once). An event that comes again finds the note, and
//     counts nothing.
//   - A message is acknowledged after the commit. If it is not acknowledged, JetStream brings it again.
//   - Events of one reservation may come in any order. Their versions tell which is the later one, so an older one changes nothing.
//
// A message that is no event is given up with a word in the log, since bringing it again would not mend it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "inbox:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	var cfg config
	f := flag.NewFlagSet("inbox", flag.ContinueOnError)
	f.StringVar(&cfg.nats, "nats", "nats://127.0.0.1:4222", "where the NATS server is")
	f.StringVar(&cfg.stream, "stream", "HEADGATE_SALE", "the stream of the events")
	f.StringVar(&cfg.file, "db", "warehouse.db", "the file of the database")
	if err := f.Parse(args); err != nil {
		return err
	}
	cfg.log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	w, err := open(ctx, cfg)
	if err != nil {
		return err
	}
	return errors.Join(w.read(ctx, cfg), w.close())
}
