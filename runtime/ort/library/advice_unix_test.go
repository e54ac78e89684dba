//go:build unix

package library

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The advice to a person fits what is missing, and is empty where nothing is.
func TestAdvice(t *testing.T) {
	absent := func(w *world) string { return filepath.Join(w.root, "absent.so") }
	cases := []struct {
		name    string
		prepare func(*world)
		path    func(*world) string
		env     map[string]string
		says    []string
		never   []string
	}{
		{"no client", func(*world) {}, nil, nil,
			[]string{"install npm", "or pip", "npm pack onnxruntime-node@" + Version, npmEntry, "pip download", pipEntry, Flag, EnvLibrary}, []string{"unset", "on first use"}},
		{"python without pip", func(w *world) { w.client("python3", "exit 1") }, nil, nil, []string{"install npm"}, []string{"on first use"}},
		{"python with pip", func(w *world) { w.client("python3", `[ "$*" = "-m pip --version" ]`) }, nil, nil, []string{"on first use", "doctor --install"}, []string{"install npm"}},
		{"ready", func(w *world) { w.client("npm", "exit 1") }, nil, nil, []string{"on first use"}, []string{"install npm"}},
		{"forbidden", func(w *world) { w.client("npm", "exit 1") }, nil, map[string]string{EnvInstall: "off"}, []string{EnvInstall + " unset", Flag, EnvLibrary}, []string{"on first use"}},
		{"no home", func(w *world) { w.l.cacheErr = os.ErrNotExist }, nil, nil, []string{"HOME", Flag}, []string{"on first use", "network"}},
		{"named", func(w *world) { w.client("npm", "exit 1") }, absent, nil,
			[]string{"absent.so", Flag, "no such file", "nothing takes the place", "leave " + Flag + " out"}, []string{"on first use", "would be used"}},
		{"named by the environment", func(*world) {}, nil, map[string]string{EnvLibrary: "/nowhere/absent.so"},
			[]string{"/nowhere/absent.so", EnvLibrary, "no such file", "leave " + EnvLibrary + " out"}, []string{"install npm"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			c.prepare(w)
			w.l.getenv = func(k string) string { return c.env[k] }
			path := ""
			if c.path != nil {
				path = c.path(w)
			}
			r := w.l.status(path)
			if _, named := r.Named(); named != (path != "" || c.env[EnvLibrary] != "") {
				t.Errorf("named is %t", named)
			}
			got := strings.Join(r.Advice(), "\n")
			for _, s := range c.says {
				if !strings.Contains(got, s) {
					t.Errorf("advice does not say %q:\n%s", s, got)
				}
			}
			for _, s := range c.never {
				if strings.Contains(got, s) {
					t.Errorf("advice says %q:\n%s", s, got)
				}
			}
		})
	}
	// A usable library elsewhere is named, and not used in the named one's place.
	r := Report{Version: Version, Platform: "linux-amd64", Candidates: []Candidate{{Source: SourceFlag, Path: "a.so", Err: ErrIncompatible}, {Source: SourceCache, Path: "b.so"}}}
	if got := strings.Join(r.Advice(), "\n"); !strings.Contains(got, "without "+Flag+", b.so would be used") {
		t.Error(got)
	}
	r.Candidates = r.Candidates[1:]
	if got := r.Advice(); got != nil {
		t.Errorf("a usable library: %q", got)
	}
}
