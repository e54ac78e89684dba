package configs

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Bytes is a size in bytes, written as 512, 64KiB, 1.5GiB or 10MB.
type Bytes int64

var byteUnits = []struct {
	name string
	size float64
}{
	{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10},
	{"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}, {"KB", 1e3}, {"B", 1},
}

// UnmarshalText reads a size; the number of bytes must be an integer that is not negative.
func (b *Bytes) UnmarshalText(text []byte) error {
	s, unit := strings.TrimSpace(string(text)), 1.0
	for _, u := range byteUnits {
		if rest, ok := strings.CutSuffix(s, u.name); ok {
			s, unit = strings.TrimSpace(rest), u.size
			break
		}
	}
	v, err := strconv.ParseFloat(s, 64)
	size := v * unit
	if err != nil || size < 0 || size != math.Trunc(size) || size > 1<<53 {
		return fmt.Errorf("expected a size such as 512, 64KiB or 1.5GiB, found %q", text)
	}
	*b = Bytes(size)
	return nil
}

// MarshalText writes the size in the largest binary unit that divides it.
func (b Bytes) MarshalText() ([]byte, error) { return []byte(b.String()), nil }

// String returns what MarshalText writes.
func (b Bytes) String() string {
	for _, u := range byteUnits[:4] {
		if unit := int64(u.size); b != 0 && int64(b)%unit == 0 {
			return strconv.FormatInt(int64(b)/unit, 10) + u.name
		}
	}
	return strconv.FormatInt(int64(b), 10)
}
