//go:build cgo && ortguard && unix

package ort

import (
	"bytes"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// canary fills what a page holds besides the tensor.
const canary = 0xa5

// guards is the memory of one run or binding in a program built with the tag ortguard: ONNX Runtime
// gets copies of all tensors, each between two pages that nobody may touch. A kernel that reads or
// writes further than a few bytes beyond a tensor ends the process at the instruction that does it.
// One that writes those few bytes, or that writes to an input, is found after the run, with a panic
// that names the value. What lies in the tensors themselves is copied in before a run and out
// after.
type guards struct {
	list []guard
}

type guard struct {
	name   string
	output bool
	bytes  []byte // the tensor's own memory
	pages  []byte // all of the mapping
	inside []byte // what C may touch, and canaries around
	copied []byte // the tensor's copy, part of inside
}

// add returns the address of a copy of b for C. It ends close to a page's end, at the alignment
// that tensors have.
func (g *guards) add(name string, b []byte, output bool) unsafe.Pointer {
	if len(b) == 0 {
		return nil
	}
	page := os.Getpagesize()
	size := (tensor.AlignUp(len(b)) + page - 1) / page * page
	pages, err := unix.Mmap(-1, 0, size+2*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		panic(fmt.Sprintf("ort: guard of %d bytes: %v", len(b), err))
	}
	k := guard{name: name, output: output, bytes: b, pages: pages, inside: pages[page : page+size]}
	for i := range k.inside {
		k.inside[i] = canary
	}
	for _, p := range [][]byte{pages[:page], pages[page+size:]} {
		if err := unix.Mprotect(p, unix.PROT_NONE); err != nil {
			panic(fmt.Sprintf("ort: guard page: %v", err))
		}
	}
	off := size - tensor.AlignUp(len(b))
	k.copied = k.inside[off : off+len(b) : off+len(b)]
	copy(k.copied, b)
	g.list = append(g.list, k)
	return unsafe.Pointer(unsafe.SliceData(k.copied))
}

// enter copies the tensors for a run.
func (g *guards) enter() {
	for _, k := range g.list {
		copy(k.copied, k.bytes)
	}
}

// leave copies the outputs of a run back, and panics when memory was written that is not an output.
func (g *guards) leave() {
	for _, k := range g.list {
		off := len(k.inside) - tensor.AlignUp(len(k.copied))
		for i, c := range k.inside {
			if c != canary && (i < off || i >= off+len(k.copied)) {
				panic(fmt.Sprintf("ort: guard: a run wrote byte %d of value %q, which has %d", i-off, k.name, len(k.copied)))
			}
		}
		if k.output {
			copy(k.bytes, k.copied)
		} else if !bytes.Equal(k.bytes, k.copied) {
			panic(fmt.Sprintf("ort: guard: a run wrote to its input %q", k.name))
		}
	}
}

// release unmaps the copies: C that still reaches for them ends the process.
func (g *guards) release() {
	for i, k := range g.list {
		if err := unix.Munmap(k.pages); err != nil {
			panic(fmt.Sprintf("ort: guard: %v", err))
		}
		g.list[i] = guard{}
	}
	g.list = g.list[:0]
}
