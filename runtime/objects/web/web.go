// Package web asks servers for objects over HTTP: imported, it lets package objects fetch data sets
// of the Hub of Hugging Face. Its connections, which drivers of storages use too, end when a server
// says nothing for a time.
package web

import (
	"context"
	"net/http"

	"github.com/onnxrl/onnxrl/runtime/objects"
)

func init() { objects.RegisterGetter(get) }

var client = &http.Client{Transport: StallTransport(StallLimit)}

// get implements objects.Getter. Package http sends the token to no other host, also where the
// server redirects to one.
func get(ctx context.Context, at, token string) (*objects.Answer, error) {
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return nil, objects.Final(err)
	}
	if token != "" {
		q.Header.Set("Authorization", "Bearer "+token)
	}
	r, err := client.Do(q)
	if err != nil {
		return nil, err
	}
	return &objects.Answer{Code: r.StatusCode, Status: r.Status, Link: r.Header.Get("Link"), Body: r.Body}, nil
}
