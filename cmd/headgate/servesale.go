package main

import (
	"os"

	"github.com/spf13/pflag"

	"github.com/headgate-io/headgate/app"
)

// saleFlags are the flags of serve that are about sales.
type saleFlags struct {
	on    bool
	store string
	cfg   app.SaleConfig
	flags *pflag.FlagSet
}

func (f *saleFlags) add(flags *pflag.FlagSet) {
	f.flags = flags
	flags.BoolVar(&f.on, "sale", false, "run flash sales under /_headgate/sales/; see docs/sale-serve.md")
	flags.StringVar(&f.cfg.DB, "db", "", "database of the sale's orders: "+app.DBForms)
	flags.StringVar(&f.store, "sale-store", "", "Redis of its own that holds the sale's stock, as --store is written (default memory, with sqlite alone)")
	flags.StringVar(&f.cfg.Pay, "pay", "", "who takes the money: URL of a payment service, simulated (no money moves) or none")
	flags.StringVar(&f.cfg.PayReturn, "pay-return", "", "where the payment service sends shoppers back to; {rid} and {order} stand for the reservation and the order")
	flags.StringVar(&f.cfg.User, "sale-user", app.DefaultSaleUser, "dimension of the policy that says who somebody is; no client can forge it")
	flags.StringVar(&f.cfg.Device, "sale-device", "", "dimension of the policy that says from which device somebody comes; order tokens are good for it alone")
	flags.StringSliceVar(&f.cfg.Origins, "sale-origin", nil, "other origins whose pages may buy, such as https://shop.example.com")
	flags.StringVar(&f.cfg.Relay, "relay", "", "broker that gets the sale's events: "+app.RelayForms)
}

// saleOnly are the flags that say nothing without --sale.
func saleOnly() []string {
	return []string{"db", "sale-store", "pay", "pay-return", "sale-user", "sale-device", "sale-origin", "relay"}
}

// stray says which flag there is in vain.
func (f *saleFlags) stray() error {
	for _, name := range saleOnly() {
		if !f.on && f.flags.Changed(name) {
			return usagef("--%s is about sales, and --sale is missing", name)
		}
	}
	return nil
}

// config returns what the flags and the environment say, nil without --sale.
func (f *saleFlags) config(limits app.StoreConfig) (*app.SaleConfig, error) {
	if !f.on {
		return nil, nil
	}
	c := f.cfg
	for _, from := range []struct {
		flag, name string
		to         *string
	}{{"db", "HEADGATE_DB", &c.DB}, {"sale-store", "HEADGATE_SALE_STORE", &f.store}} {
		if f.flags.Changed(from.flag) {
			continue
		}
		text, err := secretFromEnv(from.name)
		if err != nil {
			return nil, err
		}
		*from.to = text
	}
	var err error
	if c.Store, err = app.ParseStoreURL(f.store); err != nil {
		return nil, usagef("--sale-store: %w", err)
	}
	if c.Keys, err = secretFromEnv("HEADGATE_SALE_KEYS"); err != nil {
		return nil, err
	}
	if c.PaySecret, err = secretFromEnv("HEADGATE_PAY_SECRET"); err != nil {
		return nil, err
	}
	c.KeysFile, c.PaySecretFile = os.Getenv("HEADGATE_SALE_KEYS_FILE"), os.Getenv("HEADGATE_PAY_SECRET_FILE")
	c.Namespace, c.SentinelUsername, c.SentinelPassword = limits.Namespace, limits.SentinelUsername, limits.SentinelPassword
	return &c, nil
}
