package policy

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// ipSet is an immutable set of addresses: ranges that are sorted and do not touch. IPv4 sorts before IPv6.
type ipSet []ipRange

type ipRange struct{ first, last netip.Addr }

func newIPSet(prefixes []netip.Prefix) ipSet {
	ranges := make(ipSet, 0, len(prefixes))
	for _, p := range prefixes {
		ranges = append(ranges, ipRange{p.Addr(), lastAddr(p)})
	}
	slices.SortFunc(ranges, func(a, b ipRange) int { return a.first.Compare(b.first) })
	merged := ranges[:0]
	for _, r := range ranges {
		if n := len(merged); n > 0 && merged[n-1].joins(r) {
			if merged[n-1].last.Less(r.last) {
				merged[n-1].last = r.last
			}
			continue
		}
		merged = append(merged, r)
	}
	return slices.Clip(merged)
}

// joins tells whether next, which begins no earlier, overlaps or follows at once.
func (r ipRange) joins(next ipRange) bool {
	if r.last.Is4() != next.first.Is4() {
		return false
	}
	after := r.last.Next()
	return !after.IsValid() || next.first.Compare(after) <= 0
}

func (s ipSet) contains(a netip.Addr) bool {
	if !a.IsValid() {
		return false
	}
	low, high := 0, len(s)
	for low < high {
		mid := int(uint(low+high) >> 1)
		if s[mid].first.Compare(a) <= 0 {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low > 0 && a.Compare(s[low-1].last) <= 0
}

// wholes tells whether the set has every IPv4 address, and every IPv6 address.
func (s ipSet) wholes() (ipv4, ipv6 bool) {
	for _, r := range s {
		if r.first.IsUnspecified() && !r.last.Next().IsValid() {
			ipv4, ipv6 = ipv4 || r.first.Is4(), ipv6 || r.first.Is6()
		}
	}
	return ipv4, ipv6
}

func lastAddr(p netip.Prefix) netip.Addr {
	bytes := p.Addr().AsSlice()
	for i := p.Bits(); i < len(bytes)*8; i++ {
		bytes[i/8] |= 1 << (7 - i%8)
	}
	last, _ := netip.AddrFromSlice(bytes)
	return last
}

// parsePrefix reads an address or a prefix in CIDR notation, without bits beyond the prefix. The error does not quote the
// text, unless it names what to write instead.
func parsePrefix(text string) (netip.Prefix, error) {
	if !strings.Contains(text, "/") {
		a, err := netip.ParseAddr(text)
		if err != nil || a.Zone() != "" {
			return netip.Prefix{}, errors.New("is not an address or a prefix such as 203.0.113.0/24 or 2001:db8::/32")
		}
		a = a.Unmap()
		return netip.PrefixFrom(a, a.BitLen()), nil
	}
	p, err := netip.ParsePrefix(text)
	if err != nil {
		return netip.Prefix{}, errors.New("is not an address or a prefix such as 203.0.113.0/24 or 2001:db8::/32")
	}
	if p.Addr().Is4In6() {
		if p.Bits() < 96 {
			return netip.Prefix{}, errors.New("is wider than the IPv4 addresses in IPv6 form; write the IPv4 prefix")
		}
		p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	if p != p.Masked() {
		return netip.Prefix{}, fmt.Errorf("has bits set beyond its prefix; nearest is %s", p.Masked())
	}
	return p, nil
}
