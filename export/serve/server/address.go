package server

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
)

// family is the network of an address: one of IPv4, 0.0.0.0 among them, does not mean IPv6 too.
// Without a host, and with [::], both are meant, as far as the system has them.
func family(address string) string {
	if host, _, err := net.SplitHostPort(address); err == nil {
		if ip, err := netip.ParseAddr(host); err == nil && ip.Is4() {
			return "tcp4"
		}
	}
	return "tcp"
}

// CheckAddress refuses a text that is no address HOST:PORT.
func CheckAddress(address string) error {
	if _, port, err := net.SplitHostPort(address); err != nil {
		return fmt.Errorf("%q is no address, expected host:port such as 127.0.0.1:8000", address)
	} else if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return fmt.Errorf("%q has no port from 0 to 65535", address)
	}
	return nil
}

// Local returns an address, with that of this machine as its host where it has none.
func Local(address string) (string, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", fmt.Errorf("expected HOST:PORT or :PORT: %w", err)
	}
	if host == "" {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port), nil
}

// Loopback reports whether only this machine reaches an address.
func Loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
