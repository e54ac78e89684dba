package run

import (
	"testing"

	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// A version is that of a release where it is a tag alone.
func TestReleased(t *testing.T) {
	for version, want := range sorted.All(map[string]bool{
		"v1.2.3": true, "v0.4.0-rc.1": true, "": false, "(devel)": false, "v1.2.3+dirty": false,
		"v0.0.0-20261126195623-95e31c9112a4": false, "v1.2.4-0.20261126195623-95e31c9112a4": false,
	}) {
		if got := released(version); got != want {
			t.Errorf("%q: %v, expected %v", version, got, want)
		}
	}
}
