package walkforward

import (
	"slices"
	"testing"
)

func TestLookAheadIsOfVariants(t *testing.T) {
	sum := &Summary{pools: []*pool{{lookAhead: []string{"All do."}}, nil, {lookAhead: []string{"One does.", "All do.", "One does."}}}}
	sum.lookAhead(&Plan{Variants: []string{Base, "not judged", "levels"}})
	want := []string{"LOOK-AHEAD: All do. Such results cannot be earned.", "LOOK-AHEAD: in levels: One does. Such results cannot be earned."}
	if !slices.Equal(sum.Notes, want) {
		t.Errorf("%q, expected %q", sum.Notes, want)
	}
}
