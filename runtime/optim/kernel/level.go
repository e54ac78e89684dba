package kernel

import (
	"fmt"
	"slices"
)

// Level is an instruction set the kernels can use, the better the greater
// within one architecture.
type Level int

// The instruction sets.
const (
	Portable Level = iota // the Go twins
	NEON                  // arm64, 4 lanes
	AVX2                  // amd64, 8 lanes
	AVX512                // amd64 with AVX-512F, 16 lanes
)

// String returns the usual name of the instruction set.
func (l Level) String() string {
	switch l {
	case Portable:
		return "portable"
	case NEON:
		return "NEON"
	case AVX2:
		return "AVX2"
	case AVX512:
		return "AVX-512"
	}
	return fmt.Sprintf("Level(%d)", int(l))
}

// level is read by every dispatcher.
var level = slices.Max(Levels())

// Active returns the level in use: the best of Levels unless SetLevel chose.
func Active() Level { return level }

// SetLevel chooses the instruction set, for tests and benchmarks. It fails if
// this CPU or build lacks it and must not run concurrently with kernels.
func SetLevel(l Level) error {
	if have := Levels(); !slices.Contains(have, l) {
		return fmt.Errorf("set kernel level %v: this CPU and build have %v", l, have)
	}
	level = l
	return nil
}
