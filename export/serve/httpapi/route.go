package httpapi

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/onnxrl/onnxrl/export/serve/oip"
)

type endpoint int

const (
	page endpoint = iota
	server
	live
	ready
	metadata
	modelReady
	infer
	config
	stats
	index
	load
	unload
	metrics
	unsupported
	none
)

// target is what a request is for.
type target struct {
	endpoint       endpoint
	model, version string
	// allow are the methods, as the header Allow has them; "" leaves it to whoever answers.
	allow string
}

const (
	get  = "GET, HEAD, OPTIONS"
	post = "POST, OPTIONS"
)

func allowed(allow, method string) bool {
	for a := range strings.SplitSeq(allow, ", ") {
		if a == method {
			return true
		}
	}
	return false
}

// route finds the target of a path. Its segments are split before they are unescaped, so an escaped
// separator stays part of a name, and is refused there.
func route(r *http.Request) (target, error) {
	path := r.URL.Path
	if r.URL.RawPath != "" {
		path = r.URL.EscapedPath()
	}
	path = strings.TrimPrefix(path, "/")
	if path == "metrics" {
		return target{endpoint: metrics, allow: get}, nil
	}
	if path != "v2" && !strings.HasPrefix(path, "v2/") {
		return target{endpoint: page}, nil
	}
	var seg [8]string
	n := 0
	for part := range strings.SplitSeq(strings.TrimSuffix(path[2:], "/"), "/") {
		if n == len(seg) {
			return target{endpoint: none}, nil
		}
		seg[n] = part
		n++
	}
	if r.URL.RawPath != "" {
		for i := range n {
			s, err := url.PathUnescape(seg[i])
			if err != nil {
				return target{endpoint: none}, nil
			}
			seg[i] = s
		}
	}
	return find(seg[1:max(n, 1)])
}

// find works on the segments after v2.
func find(seg []string) (target, error) {
	at := func(i int) string {
		if i < len(seg) {
			return seg[i]
		}
		return ""
	}
	switch at(0) {
	case "":
		if len(seg) == 0 {
			return target{endpoint: server, allow: get}, nil
		}
	case "health":
		switch {
		case len(seg) == 2 && at(1) == "live":
			return target{endpoint: live, allow: get}, nil
		case len(seg) == 2 && at(1) == "ready":
			return target{endpoint: ready, allow: get}, nil
		}
	case "models":
		if len(seg) == 2 && at(1) == "stats" {
			return target{endpoint: stats, allow: get}, nil
		}
		if len(seg) >= 2 {
			return model(seg[1:])
		}
	case "repository":
		switch {
		case len(seg) == 2 && at(1) == "index":
			return target{endpoint: index, allow: post}, nil
		case len(seg) == 4 && at(1) == "models" && (at(3) == "load" || at(3) == "unload"):
			t := target{endpoint: load, model: at(2), allow: post}
			if at(3) == "unload" {
				t.endpoint = unload
			}
			return t, oip.CheckModel(t.model)
		}
	case "systemsharedmemory", "cudasharedmemory", "trace", "logging":
		return target{endpoint: unsupported}, nil
	}
	return target{endpoint: none}, nil
}

// pattern is the path with names in place of what differs among requests; empty for one that nobody
// knows.
func (t target) pattern() string {
	of := "/v2/models/{model}"
	switch {
	case t.version != "":
		of += "/versions/{version}"
	case t.model == "":
		of = "/v2/models"
	}
	switch t.endpoint {
	case server:
		return "/v2"
	case metadata:
		return of
	case modelReady:
		return of + "/ready"
	case infer:
		return of + "/infer"
	case config:
		return of + "/config"
	case stats:
		return of + "/stats"
	case index:
		return "/v2/repository/index"
	case load:
		return "/v2/repository/models/{model}/load"
	case unload:
		return "/v2/repository/models/{model}/unload"
	}
	return ""
}

// model works on the segments after models: M, M/what, M/versions/V, M/versions/V/what.
func model(seg []string) (target, error) {
	t := target{endpoint: none, model: seg[0]}
	if err := oip.CheckModel(t.model); err != nil {
		return t, err
	}
	seg = seg[1:]
	if len(seg) >= 2 && seg[0] == "versions" {
		t.version = seg[1]
		if err := oip.CheckVersion(t.version); err != nil {
			return t, err
		}
		seg = seg[2:]
	}
	t.allow = get
	switch {
	case len(seg) == 0:
		t.endpoint = metadata
	case len(seg) == 1 && seg[0] == "ready":
		t.endpoint = modelReady
	case len(seg) == 1 && seg[0] == "config":
		t.endpoint = config
	case len(seg) == 1 && seg[0] == "stats":
		t.endpoint = stats
	case len(seg) == 1 && seg[0] == "infer":
		t.endpoint, t.allow = infer, post
	case seg[0] == "trace":
		t.endpoint, t.allow = unsupported, ""
	default:
		t.allow = ""
	}
	return t, nil
}
