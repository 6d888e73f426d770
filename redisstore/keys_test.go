package redisstore

import (
	"strings"
	"testing"
)

// TestSipHash: the vectors of the reference implementation, whose key is 00 01 … 0f and whose texts are 00, 00 01, ….
func TestSipHash(t *testing.T) {
	t.Parallel()
	var key [16]byte
	for i := range key {
		key[i] = byte(i)
	}
	k := newSipKey(key[:])
	text := make([]byte, 16)
	for i := range text {
		text[i] = byte(i)
	}
	for n, want := range map[int]uint64{0: 0x726fdb47dd0e0e31, 1: 0x74f839c593dc67fd, 7: 0xab0200f58b01d137, 8: 0x93f5f5799a932462, 15: 0xa129ca6149be45e5} {
		if got := k.sum(string(text[:n])); got != want {
			t.Errorf("%d bytes: %x, want %x", n, got, want)
		}
	}
}

// TestHashTags: every shard has a tag, no two the same, and they divide the slots of a cluster evenly.
func TestHashTags(t *testing.T) {
	t.Parallel()
	if got := crc16("123456789"); got != 0x31c3 {
		t.Fatalf("CRC of 123456789 is %x", got)
	}
	seen := map[string]bool{}
	for i, tag := range hashTags() {
		slot := int(crc16(tag)) % clusterSlots
		if len(tag) != 2 || seen[tag] || slot < i*64 || slot >= (i+1)*64 {
			t.Errorf("shard %d: tag %q in slot %d", i, tag, slot)
		}
		seen[tag] = true
	}
}

// TestShardsAreEven: keys that count up spread over the shards, differently for each secret.
func TestShardsAreEven(t *testing.T) {
	t.Parallel()
	a, b := newNamer("a", ""), newNamer("a", "secret")
	var counts [shards]int
	same := 0
	for i := range 25600 {
		key := strings.Repeat("k", i%7) + string(rune('a'+i%26)) + string(rune(0x100+i))
		counts[a.shard(key)]++
		if a.shard(key) == b.shard(key) {
			same++
		}
	}
	for shard, n := range counts {
		if n < 50 || n > 170 {
			t.Errorf("shard %d has %d of 25600 keys", shard, n)
		}
	}
	if same > 300 {
		t.Errorf("%d of 25600 keys lie in the same shard under another secret", same)
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	n := newNamer("headgate", "")
	tag := func(key string) string { return n.prefixes[n.shard(key)] }
	for _, c := range []struct{ slot, key, want string }{
		{"login/0", "203.0.113.9", tag("203.0.113.9") + "=7:login/0:203.0.113.9"},
		{"", "", tag("") + "=0::"},
		{"a", "{x}", tag("{x}") + "=1:a#0-vq-WcNco9ZS8y6BjdYNw"},
		{"a", "\x00", tag("\x00") + "=1:a#bjQLnP-zepicpUTmu3gKLA"},
	} {
		if got := n.name(keyState, c.slot, c.key); got != c.want {
			t.Errorf("%q %q: %s, want %s", c.slot, c.key, got, c.want)
		}
	}
	seen := map[string][2]string{}
	parts := []string{"", "a", ":", "1:", "1:a", "a:b", "a:b:c", "b:c", "2:a", "#", "#a", "{", "}", "{a}", "ü", "\xff", strings.Repeat("x", 64), strings.Repeat("x", 65), strings.Repeat("x", 100_000)}
	for _, slot := range parts {
		for _, key := range parts {
			for _, what := range []byte{keyState, keyLockout, keyHolders, keyGone} {
				name := n.name(what, slot, key)
				if other, ok := seen[name]; ok {
					t.Errorf("%q %q and %q have one name: %s", slot, key, other, name)
				}
				seen[name] = [2]string{slot, key}
				if len(name) > 160 || strings.Count(name, "{") != 1 || strings.Count(name, "}") != 1 {
					t.Errorf("%q %q: name %q", slot, key, name)
				}
				if what != keyState && n.another(n.name(keyState, slot, key), what) != name {
					t.Errorf("%q %q: another name than %s", slot, key, name)
				}
			}
		}
	}
}
