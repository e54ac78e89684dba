package bars

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/onnxrl/onnxrl/runtime/atomicfile"
)

// qlibInstrument is what [writeQlibFolder] writes of a symbol.
type qlibInstrument struct {
	Symbol string
	// Start is the position of the first value in the calendar.
	Start int
	// Fields have equally many values each, NaN where there is none.
	Fields map[string][]float32
}

// maxQlibCalendar is the largest position that float32 counts to.
const maxQlibCalendar = 1 << 24

// writeQlibFolder makes a folder, which must not exist. It appears whole or not at all.
func writeQlibFolder(root, freq string, calendar []string, list []qlibInstrument) (err error) {
	if len(calendar) > maxQlibCalendar {
		return fmt.Errorf("write %s: a calendar of %d times; the format has positions up to %d", root, len(calendar), maxQlibCalendar)
	}
	if !slices.IsSorted(calendar) {
		return fmt.Errorf("write %s: the calendar is not in order", root)
	}
	if _, err := os.Stat(root); !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("write %s: %w", root, errors.Join(os.ErrExist, err))
	}
	if err := os.MkdirAll(filepath.Dir(root), 0o777); err != nil {
		return err
	}
	temp := atomicfile.TempName(root)
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("write %s: %w", root, err), os.RemoveAll(temp))
		}
	}()
	if err := writeQlibLines(filepath.Join(temp, "calendars", freq+".txt"), calendar); err != nil {
		return err
	}
	var ranges []string
	folders := map[string]string{}
	for _, in := range list {
		folder := strings.ToLower(in.Symbol)
		if other, ok := folders[folder]; ok || folder == "" || strings.ContainsAny(folder, "/\\\t\n") || strings.HasPrefix(folder, ".") {
			return fmt.Errorf("the symbol %q has no folder of its own (%q)", in.Symbol, other)
		}
		folders[folder] = in.Symbol
		n := -1
		for name, values := range in.Fields {
			if n >= 0 && n != len(values) {
				return fmt.Errorf("%s: %s has %d values, other fields have %d", in.Symbol, name, len(values), n)
			}
			n = len(values)
			if err := writeQlibBin(filepath.Join(temp, "features", folder, strings.ToLower(name)+"."+freq+".bin"), in.Start, values); err != nil {
				return err
			}
		}
		if n < 1 || in.Start < 0 || in.Start+n > len(calendar) {
			return fmt.Errorf("%s: %d values from position %d on in a calendar of %d times", in.Symbol, n, in.Start, len(calendar))
		}
		ranges = append(ranges, in.Symbol+"\t"+calendar[in.Start]+"\t"+calendar[in.Start+n-1])
	}
	if err := writeQlibLines(filepath.Join(temp, "instruments", "all.txt"), ranges); err != nil {
		return err
	}
	return os.Rename(temp, root)
}

func writeQlibLines(path string, list []string) error {
	return writeQlibFile(path, func(w *bytes.Buffer) {
		for _, line := range list {
			w.WriteString(line)
			w.WriteByte('\n')
		}
	})
}

func writeQlibBin(path string, start int, values []float32) error {
	return writeQlibFile(path, func(w *bytes.Buffer) {
		var b [4]byte
		for i := -1; i < len(values); i++ {
			v := float32(start)
			if i >= 0 {
				v = values[i]
			}
			binary.LittleEndian.PutUint32(b[:], math.Float32bits(v))
			w.Write(b[:])
		}
	})
}

// writeQlibFile writes a file of the new folder.
func writeQlibFile(path string, fill func(w *bytes.Buffer)) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	var b bytes.Buffer
	fill(&b)
	return os.WriteFile(path, b.Bytes(), 0o666)
}
