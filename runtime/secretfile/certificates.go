package secretfile

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
)

// Pool returns the certificates of authorities that a file has in PEM.
func Pool(path string) (*x509.CertPool, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s has no certificate in PEM", path)
	}
	return pool, nil
}

// Pair returns a certificate chain with its key, of two files.
func Pair(cert, key string) (*tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("cert %s with key %s: %w", cert, key, err)
	}
	return &pair, nil
}

// Client returns how a client connects: to servers that the authorities of the file ca vouch for, or
// those of the system where it is empty; and with a certificate of its own, unless cert is empty,
// which is read now and again for each connection. Errors name the file.
func Client(ca, cert, key string) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if ca != "" {
		var err error
		if c.RootCAs, err = Pool(ca); err != nil {
			return nil, fmt.Errorf("ca: %w", err)
		}
	}
	if cert != "" {
		if _, err := Pair(cert, key); err != nil {
			return nil, err
		}
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return Pair(cert, key) }
	}
	return c, nil
}
