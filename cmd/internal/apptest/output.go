package apptest

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
)

// Keys returns the top-level keys of a JSON document, sorted.
func Keys(t *testing.T, text string) []string {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return slices.Sorted(maps.Keys(m))
}

// Decode reads a JSON document all of whose keys T has.
func Decode[T any](t *testing.T, text string) T {
	t.Helper()
	var v T
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return v
}

// Decoded reads what a test knows of a JSON document.
func Decoded[T any](t *testing.T, text string) T {
	t.Helper()
	var v T
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return v
}

// Says expects a text to contain every one of parts.
func Says(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("it does not say %q:\n%s", p, text)
		}
	}
}
