package guard

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/onnxrl/onnxrl/export/serve"
)

// Right is what a request has to be allowed.
type Right uint8

const (
	// Open needs no token: health, and the files of the page.
	Open Right = iota
	// Use is to infer and to look.
	Use
	// Administer is to load, replace and unload models.
	Administer
)

// Tokens are the bearer tokens of a server, each of which is good; without one none is asked for.
// Without one of its own, administration takes those of use.
type Tokens struct{ Use, Admin []string }

// Guard says which requests are answered. It is safe for concurrent use.
type Guard struct {
	tokens atomic.Pointer[digests]
	names  []string
	// flag is what the program calls the names by which it is known.
	flag string
}

// digests are those of the tokens, so that comparing takes as long for every text.
type digests struct{ use, admin [][sha256.Size]byte }

func digest(tokens []string) (list [][sha256.Size]byte) {
	for _, t := range tokens {
		list = append(list, sha256.Sum256([]byte(t)))
	}
	return list
}

// New returns the guard of a server that is known by the given host names, besides those that stand
// for the machine itself.
func New(t Tokens, names ...string) *Guard {
	g := &Guard{flag: "--allow-host"}
	for _, n := range names {
		g.names = append(g.names, strings.ToLower(hostname(n)))
	}
	g.Set(t)
	return g
}

// Advise changes the flag that refusals name, --allow-host, before the guard is used.
func (g *Guard) Advise(flag string) *Guard {
	g.flag = flag
	return g
}

// Set replaces the tokens for all requests that begin from now on.
func (g *Guard) Set(t Tokens) {
	g.tokens.Store(&digests{digest(t.Use), digest(t.Admin)})
}

var (
	errNoToken = errors.New("a bearer token is needed: Authorization: Bearer TOKEN")
	errNoAdmin = errors.New("loading and unloading models needs the token of administration, which is another one than that of use")
)

// Authorize checks the value of the header Authorization against what the right needs; a token of
// administration is good for everything. Errors are [serve.Error]s with Unauthenticated or
// PermissionDenied.
func (g *Guard) Authorize(right Right, authorization string) error {
	d := g.tokens.Load()
	admin := right == Administer && len(d.admin) > 0
	if right == Open || !admin && len(d.use) == 0 {
		return nil
	}
	scheme, token, _ := strings.Cut(authorization, " ")
	got := sha256.Sum256([]byte(strings.TrimSpace(token)))
	is := func(want [sha256.Size]byte) bool { return subtle.ConstantTimeCompare(got[:], want[:]) == 1 }
	bearer := strings.EqualFold(scheme, "Bearer")
	switch {
	case bearer && slices.ContainsFunc(d.admin, is):
		return nil
	case bearer && slices.ContainsFunc(d.use, is):
		if admin {
			return &serve.Error{Code: serve.PermissionDenied, Err: errNoAdmin}
		}
		return nil
	}
	return &serve.Error{Code: serve.Unauthenticated, Err: errNoToken}
}

func denied(format string, args ...any) error {
	return &serve.Error{Code: serve.PermissionDenied, Err: fmt.Errorf(format, args...)}
}
