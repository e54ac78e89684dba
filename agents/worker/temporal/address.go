package temporal

import (
	"fmt"
	"net"
	"net/url"
	"strings"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"

	"github.com/onnxrl/onnxrl/runtime/objects"
	"github.com/onnxrl/onnxrl/runtime/secretfile"
)

// Scheme is that of addresses.
const Scheme = "temporal"

// DefaultQueue and DefaultNamespace are meant where an address does not name others.
const (
	DefaultQueue     = "onnxrl"
	DefaultNamespace = "default"
)

// Address is where a Temporal server is, and what is used of it.
type Address struct {
	HostPort, Namespace, Queue string
	// Objects is the URL of the storage that programs and workers have in common.
	Objects string
	// Strict refuses workers whose results may differ in the last bits.
	Strict bool
	// CA, Cert and Key are files in PEM format: the authority of the server's certificate, and a
	// certificate for this side. TLS is spoken where it is asked for by tls=true, or one of them is
	// given.
	TLS           bool
	CA, Cert, Key string
}

// ParseAddress reads
// temporal://HOST:PORT/NAMESPACE?queue=…&objects=…&strict=…&tls=…&ca=…&cert=…&key=….
func ParseAddress(text string) (a Address, err error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != Scheme || u.Host == "" {
		return a, fmt.Errorf("executor %q: expected temporal://HOST:PORT/NAMESPACE?objects=URL", objects.Redact(text))
	}
	if u.User != nil {
		return a, fmt.Errorf("executor temporal://%s: expected no user name or password in it; a client's certificate is a file, cert=FILE&key=FILE", u.Host)
	}
	if _, _, err := net.SplitHostPort(u.Host); err != nil {
		u.Host = net.JoinHostPort(u.Host, "7233")
	}
	a = Address{HostPort: u.Host, Namespace: strings.Trim(u.Path, "/"), Queue: DefaultQueue}
	if a.Namespace == "" {
		a.Namespace = DefaultNamespace
	}
	for key, values := range u.Query() {
		v := values[len(values)-1]
		switch key {
		case "queue":
			a.Queue = v
		case "objects":
			a.Objects = v
		case "ca":
			a.CA = v
		case "cert":
			a.Cert = v
		case "key":
			a.Key = v
		case "strict", "tls":
			if v != "true" && v != "false" {
				return a, fmt.Errorf("executor temporal://%s: %s=%s: expected true or false", u.Host, key, v)
			}
			if key == "tls" {
				a.TLS = v == "true"
			} else {
				a.Strict = v == "true"
			}
		default:
			return a, fmt.Errorf("executor temporal://%s: unknown parameter %q, expected queue, objects, strict, tls, ca, cert or key", u.Host, key)
		}
	}
	if (a.Cert == "") != (a.Key == "") {
		return a, fmt.Errorf("executor temporal://%s: cert and key belong together", u.Host)
	}
	return a, nil
}

// String is the address, without its parameters.
func (a Address) String() string { return Scheme + "://" + a.HostPort + "/" + a.Namespace }

// dial connects to the server. It does not wait for it: calls say what is wrong.
func (a Address) dial(l log.Logger) (client.Client, error) {
	o := client.Options{HostPort: a.HostPort, Namespace: a.Namespace, Logger: l}
	if a.TLS || a.CA != "" || a.Cert != "" {
		c, err := secretfile.Client(a.CA, a.Cert, a.Key)
		if err != nil {
			return nil, fmt.Errorf("%v: %w", a, err)
		}
		o.ConnectionOptions.TLS = c
	}
	return client.NewLazyClient(o)
}
