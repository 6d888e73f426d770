package lookup

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"syscall"
)

// ErrAddress is what the error of a call to an address that is refused wraps.
var ErrAddress = errors.New("the address is refused")

// servesCredentials tells whether an address is one, beside link-local ones, at which a large cloud serves credentials or
// secrets to whoever asks from inside.
func servesCredentials(a netip.Addr) bool {
	switch a.String() {
	case "100.100.100.200", "168.63.129.16", // Alibaba, Azure
		"fd00:ec2::254", "fd00:ec2::23", "fd20:ce::254", "fd00:c1::a9fe:a9fe", "fd00:42::42": // AWS twice, Google, Oracle, Scaleway
		return true
	}
	return false
}

// controlDial looks at an address when names are resolved and nothing is sent yet, so that a name that resolves to another
// address than a moment ago changes nothing.
func controlDial(_ context.Context, network, address string, _ syscall.RawConn) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%w: %s %s is no address of the internet", ErrAddress, network, address)
	}
	if kind := refusedKind(ap.Addr()); kind != "" {
		return fmt.Errorf("%w: %s is %s", ErrAddress, ap.Addr(), kind)
	}
	return nil
}

// refusedKind says what is wrong with an address, "" if nothing is.
func refusedKind(a netip.Addr) string {
	a = a.Unmap().WithZone("")
	if inner, ok := embedded(a); ok {
		if kind := refusedKind(inner); kind != "" {
			return kind
		}
	}
	switch {
	case !a.IsValid(), a.IsUnspecified(), a.Is4() && a.As4()[0] == 0:
		return "unspecified"
	case a.IsLinkLocalUnicast():
		return "link-local"
	case a.IsMulticast(), a == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return "multicast or broadcast"
	case servesCredentials(a):
		return "where a cloud serves credentials"
	}
	return ""
}

// embedded returns the IPv4 address that an IPv6 address leads to by translation (64:ff9b::/96, and 64:ff9b:1::/48 in the form
// with the address at its end), by 6to4 (2002::/16), or in the old compatible form (::/96).
func embedded(a netip.Addr) (netip.Addr, bool) {
	if !a.Is6() {
		return netip.Addr{}, false
	}
	b := a.As16()
	switch {
	case b[0] == 0x20 && b[1] == 0x02:
		return netip.AddrFrom4([4]byte(b[2:6])), true
	case [12]byte(b[:12]) == [12]byte{0, 0x64, 0xff, 0x9b}, [6]byte(b[:6]) == [6]byte{0, 0x64, 0xff, 0x9b, 0, 1}, [12]byte(b[:12]) == [12]byte{} && b[12] != 0:
		return netip.AddrFrom4([4]byte(b[12:])), true
	}
	return netip.Addr{}, false
}
