package redisstore

import (
	"crypto/sha256"
	"encoding/base64"
	"strconv"
)

// shards is how many hash tags a namespace has. It is part of where the data lies: a change loses all of it.
const shards = 256

// clusterSlots is how many hash slots a Redis Cluster has.
const clusterSlots = 16384

// maxPlain is the longest slot or key that is written out.
const maxPlain = 64

// What a key of Redis holds, one letter after the hash tag.
const (
	keyState   = '='
	keyLockout = '!'
	keyHolders = '+'
	keyGone    = '-'
)

// namer makes the keys of Redis:
//
//	headgate{0k}=7:login/0:203.0.113.9
//
// namespace, shard, what it holds, the slot with its length before it, and the key to the end. No two can be the same: a
// slot or key that is long or has bytes beyond printable ASCII, or braces, is 128 bits of its SHA-256 after a '#', which
// neither a length nor a ':' can be.
type namer struct {
	prefixes [shards]string // namespace and hash tag
	sip      sipKey
}

func newNamer(namespace, secret string) *namer {
	if secret == "" {
		secret = namespace
	}
	sum := sha256.Sum256([]byte("headgate shards\x00" + secret))
	n := &namer{sip: newSipKey(sum[:])}
	for i, tag := range hashTags() {
		n.prefixes[i] = namespace + "{" + tag + "}"
	}
	return n
}

// hashTags returns a tag for each shard, such that the shards divide the slots of a cluster evenly: shard i lies among
// the i-th of 256 equal parts of them.
func hashTags() (tags [shards]string) {
	const letters = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	for i := range letters {
		for j := range letters {
			tag := string([]byte{letters[i], letters[j]})
			part := int(crc16(tag)) % clusterSlots / (clusterSlots / shards)
			if tags[part] == "" {
				tags[part] = tag
			}
		}
	}
	return tags
}

// crc16 is the checksum by which a cluster assigns keys to slots (CRC-16/XMODEM).
func crc16(s string) (crc uint16) {
	for i := range len(s) {
		crc ^= uint16(s[i]) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return crc
}

// shard is that of a key, whatever the slot: the limits of one client lie together, and are decided in one script.
func (n *namer) shard(key string) int { return int(n.sip.sum(key) % shards) }

// name returns the key of Redis for what is kept of a slot's key.
func (n *namer) name(what byte, slot, key string) string {
	var buf [2*maxPlain + 96]byte
	b := append(buf[:0], n.prefixes[n.shard(key)]...)
	b = append(b, what)
	if plain(slot) {
		b = strconv.AppendInt(b, int64(len(slot)), 10)
		b = append(b, ':')
		b = append(b, slot...)
	} else {
		b = appendHash(b, slot)
	}
	if plain(key) {
		b = append(b, ':')
		b = append(b, key...)
	} else {
		b = appendHash(b, key)
	}
	return string(b)
}

func plain(s string) bool {
	if len(s) > maxPlain {
		return false
	}
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '{' || c == '}' {
			return false
		}
	}
	return true
}

func appendHash(b []byte, s string) []byte {
	sum := sha256.Sum256([]byte(s))
	b = append(b, '#')
	return base64.RawURLEncoding.AppendEncode(b, sum[:16])
}

// another turns the name of a state into that of something else kept of the same slot and key.
func (n *namer) another(state string, what byte) string {
	b := []byte(state)
	b[len(n.prefixes[0])] = what
	return string(b)
}
