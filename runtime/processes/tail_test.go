package processes

import (
	"fmt"
	"strings"
	"testing"
)

func TestWriter(t *testing.T) {
	var all strings.Builder
	w := &Tail{Limit: 64, Copy: &all}
	if w.String() != "" {
		t.Errorf("nothing was written: %q", w)
	}
	for i := range 100 {
		if n, err := fmt.Fprintf(w, "line %d \xff\n", i); n != len(fmt.Sprintf("line %d \xff\n", i)) || err != nil {
			t.Fatal(n, err)
		}
	}
	got := w.String()
	if len(w.buf) > 2*w.Limit || !strings.HasPrefix(got, "line 9") || !strings.HasSuffix(got, "line 98 ?\nline 99 ?") || strings.Count(all.String(), "\n") != 100 {
		t.Errorf("%d bytes are kept, of which %q, and %d lines copied", len(w.buf), got, strings.Count(all.String(), "\n"))
	}
	long := &Tail{Limit: 8}
	if _, err := long.Write([]byte("0123456789")); err != nil || long.String() != "23456789" {
		t.Errorf("%q, %v", long, err)
	}
}
