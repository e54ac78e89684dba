package library

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestFirstUseInstalls takes the way of the product, on the machine as it is:
// the first run installs the published library, every further one finds it.
// Where installing is forbidden, it asserts the refusal instead.
func TestFirstUseInstalls(t *testing.T) {
	l := newLocator()
	found, err := Locate(t.Context(), Options{AllowInstall: true, Progress: func(p Progress) {
		t.Logf("%s %s %d/%d", p.Phase, p.Client, p.Bytes, p.Total)
	}})
	if err != nil {
		if reason := l.installable(true); reason != nil && l.getenv(EnvLibrary) == "" {
			t.Logf("no library, and none may be installed: %v", reason)
			return
		}
		t.Fatal(err)
	}
	t.Logf("found %+v", found)
	if !filepath.IsAbs(found.Path) {
		t.Errorf("path %s is relative", found.Path)
	}
	version, err := inspect(found.Path, l.platform)
	if err != nil {
		t.Fatal(err)
	}
	switch found.Source {
	case SourceCache, SourceInstalled:
		if !strings.HasPrefix(Version, version) {
			t.Errorf("%s is of release %s, expected %s", found.Path, version, Version)
		}
		if src := l.catalog.bySum(l.platform, found.SHA256); src == nil {
			t.Errorf("SHA-256 %s is not in the catalogue", found.SHA256)
		}
	}
	again, err := Locate(t.Context(), Options{})
	if err != nil || again.Path != found.Path || again.Source == SourceInstalled {
		t.Errorf("second use: %+v, %v", again, err)
	}
	chosen, ok := Status("").Chosen()
	if !ok || chosen.Path != found.Path {
		t.Errorf("status chooses %+v, Locate %s", chosen, found.Path)
	}
}
