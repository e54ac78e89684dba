package flightrpc

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync/atomic"

	"google.golang.org/grpc/credentials"
)

// judged are credentials that keep why a connection has failed for good.
type judged struct {
	credentials.TransportCredentials
	refused *atomic.Pointer[error]
	// closed says that the server ended the last connection without a word.
	closed *atomic.Bool
}

// ClientHandshake implements credentials.TransportCredentials.
func (j *judged) ClientHandshake(ctx context.Context, authority string, raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := j.TransportCredentials.ClientHandshake(ctx, authority, raw)
	j.refused.Store(refusal(err))
	if err != nil {
		return conn, info, err
	}
	return &heard{Conn: conn, by: j}, info, nil
}

// Clone implements credentials.TransportCredentials.
func (j *judged) Clone() credentials.TransportCredentials {
	return &judged{j.TransportCredentials.Clone(), j.refused, j.closed}
}

// heard is a connection over which a server may still say, after the handshake, that it does not
// take the client's certificate (TLS 1.3), and what answers may turn out to speak something else.
type heard struct {
	net.Conn
	by *judged
	// first are the first bytes that came, until there are enough to judge by.
	first  []byte
	judged bool
}

// Read implements net.Conn.
func (h *heard) Read(b []byte) (int, error) {
	n, err := h.Conn.Read(b)
	if !h.judged {
		h.judge(b[:n], err)
	}
	if why := refusal(err); why != nil {
		h.by.refused.Store(why)
	}
	return n, err
}

// judge looks at how a server begins: HTTP/2 demands a frame of settings, whose fourth byte is its
// type.
func (h *heard) judge(b []byte, err error) {
	const at, settings = 3, 4
	h.first = append(h.first, b[:min(len(b), at+1-len(h.first))]...)
	h.by.closed.Store(len(h.first) == 0 && err != nil)
	if len(h.first) <= at && (err == nil || len(h.first) == 0) {
		return
	}
	h.judged = true
	if len(h.first) > at && h.first[at] == settings {
		return
	}
	why := fmt.Errorf("what answers does not speak gRPC: it begins with %q", h.first)
	if h.first[0] == tlsAlert {
		why = errors.New("what answers speaks TLS: expected grpc+tls:// in the url, or a server without a certificate")
	}
	h.by.refused.Store(&why)
}

// tlsAlert is the first byte of what a TLS server says to somebody who does not speak it.
const tlsAlert = 21

// refusal is the error of a handshake that will fail again; nil of any other.
func refusal(err error) *error {
	var cert *tls.CertificateVerificationError
	var header tls.RecordHeaderError
	var op *net.OpError
	switch {
	case errors.As(err, &cert):
		err = fmt.Errorf("the server's certificate: %w", cert.Err)
	case errors.As(err, &header):
		err = fmt.Errorf("the server does not speak TLS (%w): expected grpc:// in the url, or a server with a certificate", err)
	case errors.As(err, &op) && op.Op == "remote error":
		err = fmt.Errorf("the server refuses the connection: %w", op.Err)
	default:
		return nil
	}
	return &err
}
