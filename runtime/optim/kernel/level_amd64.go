//go:build !noasm

package kernel

import "golang.org/x/sys/cpu"

// Levels returns the instruction sets that this CPU and build can use.
func Levels() []Level {
	have := []Level{Portable}
	if cpu.X86.HasAVX2 {
		have = append(have, AVX2)
		if cpu.X86.HasAVX512F {
			have = append(have, AVX512)
		}
	}
	return have
}
