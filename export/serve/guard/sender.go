package guard

import (
	"net"
	"net/netip"
	"strings"
)

// Sender is what a request tells of where it comes from; fields that it does not have are empty.
type Sender struct {
	// Host is what the request calls the server, with or without a port.
	Host string
	// Local is the server's end of the connection; nil where it is not known.
	Local net.Addr
	// Origin, Site and Mode are the headers Origin, Sec-Fetch-Site and Sec-Fetch-Mode.
	Origin, Site, Mode string
	// Reads says that the request changes nothing by its method.
	Reads bool
}

// Browser reports whether a browser has sent the request.
func (s Sender) Browser() bool { return s.Origin != "" || s.Site != "" }

// Sender refuses requests that another site's page may have sent. Errors are [serve.Error]s with
// PermissionDenied.
func (g *Guard) Sender(s Sender) error {
	if t, ok := s.Local.(*net.TCPAddr); ok && t.IP.IsLoopback() && !g.own(s.Host) {
		return denied("the server is not known as %.255q, and the connection comes from its own machine; a proxy that keeps the name needs %s", s.Host, g.flag)
	}
	switch s.Site {
	case "same-origin", "none":
		return nil
	case "":
		// An old browser, or one that does not trust the network: Origin has to do.
		if s.Origin == "" {
			return nil
		}
	default:
		if s.Reads && s.Mode == "navigate" {
			return nil // a link to the page
		}
	}
	if g.sameOrigin(s) {
		return nil
	}
	return denied("requests of other sites' pages are refused (Origin %.255q, Sec-Fetch-Site %.20q); if the page is the server's own behind a proxy, its name needs %s", s.Origin, s.Site, g.flag)
}

// own reports whether a name stands for the machine itself, is one that the server is known by, or
// is an address.
func (g *Guard) own(host string) bool {
	name := hostname(host)
	switch {
	case name == "", strings.EqualFold(name, "localhost"), len(name) > 10 && strings.EqualFold(name[len(name)-10:], ".localhost"), g.known(name):
		return true
	}
	// No name service can have an address point elsewhere; what is forwarded to this machine may
	// call it by any.
	_, err := netip.ParseAddr(name)
	return err == nil
}

func (g *Guard) known(name string) bool {
	for _, n := range g.names {
		if strings.EqualFold(n, name) {
			return true
		}
	}
	return false
}

// sameOrigin reports whether the page is the server's own: its host is what the request calls the
// server, or a name that the server is known by.
func (g *Guard) sameOrigin(s Sender) bool {
	_, host, ok := strings.Cut(s.Origin, "://")
	if !ok {
		return false // none, or "null"
	}
	// A browser that says that the sites differ knows it better than the port.
	return s.Site == "" && strings.EqualFold(host, s.Host) || g.known(hostname(host))
}

// hostname is a host without its port, the brackets of an IPv6 address and the root's dot.
func hostname(host string) string {
	if rest, ok := strings.CutPrefix(host, "["); ok {
		name, _, _ := strings.Cut(rest, "]")
		return name
	}
	if i := strings.IndexByte(host, ':'); i >= 0 && i == strings.LastIndexByte(host, ':') {
		host = host[:i]
	}
	return strings.TrimSuffix(host, ".")
}
