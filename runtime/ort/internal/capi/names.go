//go:build cgo

package capi

// #include <stdlib.h>
// #include "shim.h"
import "C"

import "unsafe"

// Names is a list of C strings for runs. It lives outside the Go heap until Free; copies share
// its memory.
//
// Go code never stores into C memory through a pointer type. Such a store runs a write barrier
// while the collector marks, and the barrier reports the old value of the word to the collector
// as if it were live: in memory fresh from malloc that is whatever the word held before, for
// instance the address of a tensor that Go has freed since, and the heap is corrupt. C strings
// are therefore written here as bytes and their addresses as integers; TestStoresIntoC looks for
// the mistake in the whole module.
type Names struct {
	block unsafe.Pointer // n addresses (char*), then the strings that they point to
	n     int
}

// NewNames copies names, which must not contain zero bytes.
func NewNames(names []string) Names {
	l := Names{n: len(names)}
	if l.n == 0 {
		return l
	}
	const word = int(unsafe.Sizeof(uintptr(0)))
	size := l.n * word
	for _, s := range names {
		size += len(s) + 1
	}
	// Zeroed, so that nothing stale is ever read from it, and the strings end by themselves.
	l.block = C.calloc(1, C.size_t(size))
	text := unsafe.Slice((*byte)(l.block), size)
	at := l.n * word
	for i, s := range names {
		l.addresses()[i] = uintptr(l.block) + uintptr(at)
		at += copy(text[at:], s) + 1
	}
	return l
}

func (l Names) addresses() []uintptr { return unsafe.Slice((*uintptr)(l.block), l.n) }

// list returns the C array of strings.
func (l Names) list() unsafe.Pointer { return l.block }

// Free releases the strings.
func (l *Names) Free() {
	C.free(l.block)
	l.block, l.n = nil, 0
}

// Bind gives a binding the value of the i-th name; the binding keeps a reference
// of its own.
func (l Names) Bind(binding Handle, i int, value Handle, output bool) error {
	return check(C.onnxrl_bind(binding, C.uintptr_t(l.addresses()[i]), value, flag(output)))
}
