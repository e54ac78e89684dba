//go:build cgo && ortguard && unix

package ort

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"unsafe"
)

// envGuard makes the test binary commit the mistakes that guards find, in a process of its own.
const envGuard = "ONNXRL_TEST_GUARD"

// mistake writes one byte at an offset from the start of a guarded tensor of 10 bytes.
func mistake(offset int, output bool) {
	var g guards
	b := []byte("0123456789")
	p := (*byte)(unsafe.Add(g.add("x", b, output), offset))
	g.enter()
	*p = 'X'
	g.leave()
	fmt.Print(string(b))
	g.release()
	if offset == 3 {
		*p = 'Y' // after C's time
	}
}

func TestGuard(t *testing.T) {
	if mode := os.Getenv(envGuard); mode != "" {
		var offset int
		var output bool
		fmt.Sscan(mode, &offset, &output)
		mistake(offset, output)
		return
	}
	page := os.Getpagesize()
	for _, c := range []struct {
		offset int
		output bool
		says   string
	}{
		{4, true, "0123X56789"},
		{4, false, `wrote to its input "x"`},
		{10, true, `wrote byte 10 of value "x", which has 10`},
		{-1, true, `wrote byte -1 of value "x", which has 10`},
		{64, true, "SIGSEGV"},
		{64 - 2*page, true, "SIGSEGV"},
		{3, true, "SIGSEGV"},
	} {
		cmd := exec.Command(os.Args[0], "-test.run", "^TestGuard$")
		cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d %v", envGuard, c.offset, c.output))
		out, err := cmd.CombinedOutput()
		if !strings.Contains(string(out), c.says) || (err == nil) != (c.says == "0123X56789") {
			t.Errorf("offset %d: %v\n%s\nexpected %s", c.offset, err, out, c.says)
		}
	}
}
