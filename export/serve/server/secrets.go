package server

import (
	"crypto/tls"
	"errors"
	"fmt"
	"slices"

	"github.com/onnxrl/onnxrl/export/serve/guard"
	"github.com/onnxrl/onnxrl/runtime/secretfile"
)

// TLS are files in PEM: the server's certificate chain and its key, and, for clients that need
// certificates too (mTLS), those of the authorities that issue them.
type TLS struct {
	Cert, Key string
	ClientCA  string `yaml:"client_ca"`
}

// Files are the secrets of a server; it does without those that are not named. Files of tokens have
// one a line, any of which is good.
type Files struct {
	TLS
	Token, AdminToken string
}

// Reload reads the files again, for connections and requests that begin from now on. A file that
// cannot be read leaves in force what was read before. Whether connections are encrypted stays.
func (s *Server) Reload(f Files) error {
	return errors.Join(s.reloadTokens(f), s.reloadCertificate(f.TLS))
}

func (s *Server) reloadTokens(f Files) error {
	var t guard.Tokens
	for _, x := range []struct {
		key, path string
		to        *[]string
	}{{"token_file", f.Token, &t.Use}, {"admin_token_file", f.AdminToken, &t.Admin}} {
		if x.path == "" {
			continue
		}
		var err error
		if *x.to, err = secretfile.Tokens(x.path); err != nil {
			return fmt.Errorf("read the token of %s: %w", x.key, err)
		}
	}
	if slices.ContainsFunc(t.Use, func(use string) bool { return slices.Contains(t.Admin, use) }) {
		return fmt.Errorf("read the token: %s and %s hold the same one, expected one of its own for administration", f.Token, f.AdminToken)
	}
	s.Guard.Set(t)
	return nil
}

func (s *Server) reloadCertificate(t TLS) error {
	if (t.Cert == "") != (s.options.Cert == "") {
		return errors.New("tls: connections are encrypted or they are not from the start on: restart the server for that")
	}
	if t == (TLS{}) {
		return nil
	}
	c, err := t.load()
	if err != nil {
		return err
	}
	s.secure.Store(c)
	return nil
}

// load reads the certificate and the authorities of clients.
func (t TLS) load() (*tls.Config, error) {
	if t.Cert == "" || t.Key == "" {
		return nil, errors.New("tls: expected cert and key together, and client_ca only beside them")
	}
	pair, err := secretfile.Pair(t.Cert, t.Key)
	if err != nil {
		return nil, fmt.Errorf("tls: %w", err)
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{*pair}, NextProtos: []string{"h2", "http/1.1"}}
	if t.ClientCA != "" {
		c.ClientAuth = tls.RequireAndVerifyClientCert
		if c.ClientCAs, err = secretfile.Pool(t.ClientCA); err != nil {
			return nil, fmt.Errorf("tls.client_ca: %w", err)
		}
	}
	return c, nil
}

// TLS returns what a protocol encrypts its connections with, nil without a certificate. A connection
// gets the certificate that was read last before it began.
func (s *Server) TLS() *tls.Config {
	c := s.secure.Load()
	if c == nil {
		return nil
	}
	outer := c.Clone()
	outer.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return s.secure.Load(), nil }
	return outer
}
