//go:build cgo

package ort

import "testing"

// SetHandOver makes models hand over their initializers from these sizes on, until
// the test ends.
func SetHandOver(t *testing.T, total, each int) {
	oldTotal, oldEach := handOverTotal, handOverEach
	handOverTotal, handOverEach = total, each
	t.Cleanup(func() { handOverTotal, handOverEach = oldTotal, oldEach })
}

var CheckLayout = checkLayout
