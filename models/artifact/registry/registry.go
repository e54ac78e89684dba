// Package registry reaches OCI registries, for artefacts to be pushed to and pulled from. It is the
// only one that knows the protocol; package artifact has stores, and the interface that a
// [Repository] implements.
//
// # How to add a way to log in
//
// Add a field to [Options] and a case to [Open], and what its user can do about an error to
// [Repository.Explain].
package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/credentials"
	"oras.land/oras-go/v2/registry/remote/errcode"
	"oras.land/oras-go/v2/registry/remote/retry"

	"github.com/onnxrl/onnxrl/models/artifact"
	"github.com/onnxrl/onnxrl/runtime/objects/web"
)

// Options say how a registry is reached.
type Options struct {
	// Plain asks without TLS; nil does so for registries on this machine.
	Plain *bool
	// Username and Password log in; without a user the credentials are those of Docker's
	// configuration.
	Username, Password string
	// Agent is what the program calls itself.
	Agent string
	// Patience is how long a registry may say nothing, also within an answer; 0 is [web.StallLimit].
	Patience time.Duration
}

// Repository is a repository of a registry. It is safe for concurrent use.
type Repository struct {
	*remote.Repository
	o Options
}

var _ artifact.Target = (*Repository)(nil)

// Open returns the repository of REGISTRY/REPOSITORY[:TAG|@DIGEST] and the tag or digest, which is
// empty where there is none. Nothing is asked yet.
func Open(ref string, o Options) (*Repository, string, error) {
	at, err := registry.ParseReference(ref)
	if err != nil {
		return nil, "", fmt.Errorf("registry reference %q: expected REGISTRY/REPOSITORY with :TAG or @sha256:…, such as registry.example.com/team/models:v1: %w", ref, err)
	}
	repo, err := remote.NewRepository(at.Registry + "/" + at.Repository)
	if err != nil {
		return nil, "", fmt.Errorf("registry reference %q: %w", ref, err)
	}
	repo.PlainHTTP = isLoopback(at.Registry)
	if o.Plain != nil {
		repo.PlainHTTP = *o.Plain
	}
	if o.Patience == 0 {
		o.Patience = web.StallLimit
	}
	client := &auth.Client{Client: httpClient(o.Patience), Cache: auth.NewCache()}
	client.SetUserAgent(o.Agent)
	if o.Username != "" {
		client.Credential = auth.StaticCredential(at.Registry, auth.Credential{Username: o.Username, Password: o.Password})
	} else {
		store, err := credentials.NewStoreFromDocker(credentials.StoreOptions{})
		if err != nil {
			return nil, "", fmt.Errorf("read the configuration of docker: %w", err)
		}
		client.Credential = credentials.Credential(store)
	}
	repo.Client = client
	return &Repository{repo, o}, at.Reference, nil
}

// Name is REGISTRY/REPOSITORY.
func (r *Repository) Name() string { return r.Reference.Registry + "/" + r.Reference.Repository }

// absent marks an error for anything that is not there.
func absent(err error) error {
	if errors.Is(err, errdef.ErrNotFound) {
		return artifact.NotFound(err)
	}
	return err
}

// Fetch implements artifact.Source.
func (r *Repository) Fetch(ctx context.Context, d ocispec.Descriptor) (io.ReadCloser, error) {
	body, err := r.Repository.Fetch(ctx, d)
	return body, absent(err)
}

// Resolve implements artifact.Source.
func (r *Repository) Resolve(ctx context.Context, ref string) (ocispec.Descriptor, error) {
	d, err := r.Repository.Resolve(ctx, ref)
	return d, absent(err)
}

// Push implements artifact.Target.
func (r *Repository) Push(ctx context.Context, d ocispec.Descriptor, body io.Reader) error {
	if err := r.Repository.Push(ctx, d, body); !errors.Is(err, errdef.ErrAlreadyExists) {
		return absent(err)
	}
	return nil
}

// httpClient asks again what a registry had no time for, or failed at, but not where it has stopped
// saying anything.
func httpClient(patience time.Duration) *http.Client {
	again := *retry.DefaultPolicy.(*retry.GenericPolicy)
	again.Retryable = func(answer *http.Response, err error) (bool, error) {
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return false, err
		}
		return retry.DefaultPredicate(answer, err)
	}
	t := retry.NewTransport(web.StallTransport(patience))
	t.Policy = func() retry.Policy { return &again }
	return &http.Client{Transport: t}
}

// isLoopback reports whether a registry is on this machine.
func isLoopback(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Explain adds to an error of a transfer what the user of the command line can do about it.
func (r *Repository) Explain(err error) error {
	if err == nil {
		return nil
	}
	host := r.Reference.Registry
	err = fmt.Errorf("registry %s: %w", host, err)
	hint := func(s string) error { return fmt.Errorf("%w; %s", err, s) }
	var answer *errcode.ErrorResponse
	errors.As(err, &answer)
	var dns *net.DNSError
	switch {
	case answer != nil && answer.StatusCode == http.StatusUnauthorized, errors.Is(err, auth.ErrBasicCredentialNotFound):
		if r.o.Username != "" {
			return hint("it does not take this user and password")
		}
		return hint("log in with docker login " + host + ", or give --username and --password-stdin")
	case answer != nil && answer.StatusCode == http.StatusForbidden:
		return hint("the user may not do this in " + r.Reference.Repository)
	case answer != nil && answer.StatusCode == http.StatusRequestEntityTooLarge:
		return hint("it does not take files of this size")
	case strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		return hint("give --plain-http for a registry without TLS")
	case errors.Is(err, os.ErrDeadlineExceeded):
		return hint(fmt.Sprintf("nothing came from it for %v; what has arrived is kept, so the same command goes on", r.o.Patience))
	case errors.Is(err, syscall.ECONNREFUSED):
		return hint("is it running, and is this its port?")
	case errors.As(err, &dns):
		return hint("check the name of the registry")
	case errors.Is(err, errdef.ErrNotFound):
		return hint("check the name of the repository, and the tag or digest")
	}
	return err
}
