package objects

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// shown are parameters whose values may be shown: they say where something is and not who asks.
var shown = []string{"endpoint", "region", "profile", "use_path_style", "s3ForcePathStyle", "anonymous"}

// Redact returns a URL without what may be secret: user info, and the values of parameters other
// than those that say where the storage is. Of what cannot be read as a URL at most the scheme is
// left.
func Redact(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		// Nothing is known about its parts.
		scheme, _, ok := strings.Cut(raw, "://")
		if !ok {
			return "(not a URL)"
		}
		return scheme + "://…"
	}
	if u.User != nil {
		u.User = url.User("REDACTED")
	}
	if u.RawQuery != "" {
		q, err := url.ParseQuery(u.RawQuery)
		if err != nil {
			u.RawQuery = "REDACTED"
			return u.String()
		}
		for name, values := range q {
			for i, v := range values {
				switch {
				case !slices.Contains(shown, name):
					values[i] = "REDACTED"
				case name == "endpoint" && strings.Contains(v, "://"):
					values[i] = Redact(v)
				}
			}
		}
		u.RawQuery = q.Encode()
	}
	return u.String()
}

// parseURL takes a URL apart. Its errors do not repeat what may be secret.
func parseURL(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil {
		// The error of net/url repeats the URL, and so is left out.
		return nil, fmt.Errorf("URL %s cannot be read", Redact(raw))
	}
	switch {
	case u.Scheme == "" || !strings.Contains(raw, "://"):
		return nil, fmt.Errorf("%q is no URL; expected SCHEME://… with one of %s", Redact(raw), strings.Join(Schemes(), ", "))
	case u.User != nil:
		return nil, fmt.Errorf("URL %s: credentials do not belong into a URL; leave them to the environment or the files of the storage's own tools", Redact(raw))
	}
	if _, err := url.ParseQuery(u.RawQuery); err != nil {
		return nil, fmt.Errorf("URL %s: its parameters cannot be read", Redact(raw))
	}
	return u, nil
}
