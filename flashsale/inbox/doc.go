// Package inbox lets a reader of a sale's events, or of any messages that come at least once, take each of them once: what a message
// does to the reader's own database and the note that it was done are one transaction.
//
//	box, err := inbox.New(inbox.Config{DB: db, Dialect: inbox.PostgreSQL, Consumer: "ledger"})
//	…
//	first, err := box.Once(ctx, messageID, func(tx *sql.Tx) error {
//		_, err := tx.ExecContext(ctx, "UPDATE …")
//		return err
//	})
//	if err != nil {
//		// Nothing has happened: do not acknowledge, and the broker brings the message again.
//	}
//	// Acknowledge, whether it was the first time or not.
//
// What is done outside the transaction, such as an e-mail, is not undone with it: write down in the transaction that it is to be
// sent, and send it afterwards.
//
// The package needs nothing but the standard library and a table, whose schema it has for each dialect.
package inbox
