package flashsale

import (
	"crypto/sha256"
	"encoding/base64"
	"strconv"
)

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// shortHash returns 128 bits of SHA-256 as 22 letters, digits, - and _.
func shortHash(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		h.Write([]byte(itoa(int64(len(p)))))
		h.Write([]byte{':'})
		h.Write([]byte(p))
	}
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:16])
}

// BodyHash is the hash of what a reserve call asks for, by which a rid that comes with another body is told.
func BodyHash(key Key, user string, quantity int64) string {
	return shortHash(key.Sale, key.SKU, user, itoa(quantity))
}

// OrderID is the id of the order of a reservation: of its rid, so that it is the same however often it is decided.
func OrderID(rid string) string { return "o." + shortHash("order", rid) }
