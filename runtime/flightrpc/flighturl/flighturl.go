// Package flighturl reads the URLs of Arrow Flight servers. It is apart from package flightrpc, so that
// a document with such a URL is checked by programs that link no gRPC.
package flighturl

import (
	"fmt"
	"net/url"
)

// Parse splits grpc://HOST:PORT, grpc+tcp://HOST:PORT or grpc+tls://HOST:PORT into its host with the
// port and whether TLS is asked for. What is wrong with any other text is the error.
func Parse(text string) (host string, secure bool, err error) {
	u, err := url.Parse(text)
	if err != nil {
		u = &url.URL{}
	}
	secure = u.Scheme == "grpc+tls"
	if !secure && u.Scheme != "grpc" && u.Scheme != "grpc+tcp" || u.Hostname() == "" || u.Port() == "" || u.Path != "" || u.User != nil {
		return "", false, fmt.Errorf("is %q, expected grpc://HOST:PORT or grpc+tls://HOST:PORT", text)
	}
	return u.Host, secure, nil
}

// Check reports what is wrong with the URL of a server.
func Check(text string) error {
	_, _, err := Parse(text)
	return err
}
