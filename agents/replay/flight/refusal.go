package flight

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync/atomic"

	"google.golang.org/grpc/credentials"
)

// judged are TLS credentials that keep why a handshake has failed for good. gRPC reports a
// certificate that has expired like a server that is not there, and goes on trying.
type judged struct {
	credentials.TransportCredentials
	refused *atomic.Pointer[error]
}

// ClientHandshake implements credentials.TransportCredentials.
func (j *judged) ClientHandshake(ctx context.Context, authority string, raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := j.TransportCredentials.ClientHandshake(ctx, authority, raw)
	j.refused.Store(refusal(err))
	if err != nil {
		return conn, info, err
	}
	return &heard{conn, j.refused}, info, nil
}

// Clone implements credentials.TransportCredentials.
func (j *judged) Clone() credentials.TransportCredentials {
	return &judged{j.TransportCredentials.Clone(), j.refused}
}

// heard is a connection over which a server may still say, after the handshake, that it does not
// take the client's certificate (TLS 1.3).
type heard struct {
	net.Conn
	refused *atomic.Pointer[error]
}

// Read implements net.Conn.
func (h *heard) Read(b []byte) (int, error) {
	n, err := h.Conn.Read(b)
	if why := refusal(err); why != nil {
		h.refused.Store(why)
	}
	return n, err
}

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
