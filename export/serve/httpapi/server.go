package httpapi

import (
	"crypto/tls"
	"net/http"
	"time"
)

// ServerOptions are the limits of connections. 0 stands for the defaults in parentheses.
type ServerOptions struct {
	// ReadHeader (5 s) and Read (30 s) bound how long a request may take to arrive, Write (2 min)
	// how long it may take altogether from the end of its header, Idle (2 min) how long a
	// connection may rest.
	ReadHeader, Read, Write, Idle time.Duration
	// MaxHeader is the most bytes of a header; 0 stands for DefaultMaxHeader.
	MaxHeader int
	// TLS, unless nil, is what the listener needs; see [TLS].
	TLS *tls.Config
}

// Limits of a connection.
const (
	DefaultMaxHeader = 64 << 10
	// MaxStreams is the most requests at once of one HTTP/2 connection.
	MaxStreams = 1024
)

// NewServer returns a server with every limit set, so that no client keeps a connection by sending
// slowly. It speaks HTTP/1.1 and HTTP/2, the latter without encryption too, to clients that know it
// from the start (h2c).
func NewServer(h http.Handler, o ServerOptions) *http.Server {
	or := func(d, otherwise time.Duration) time.Duration {
		if d > 0 {
			return d
		}
		return otherwise
	}
	if o.MaxHeader <= 0 {
		o.MaxHeader = DefaultMaxHeader
	}
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	return &http.Server{
		Protocols: &protocols, HTTP2: &http.HTTP2Config{MaxConcurrentStreams: MaxStreams},
		Handler: h, TLSConfig: o.TLS, MaxHeaderBytes: o.MaxHeader,
		ReadHeaderTimeout: or(o.ReadHeader, 5*time.Second), ReadTimeout: or(o.Read, 30*time.Second), WriteTimeout: or(o.Write, 2*time.Minute), IdleTimeout: or(o.Idle, 2*time.Minute),
	}
}
