package bars

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path"
	"slices"
	"strings"
)

// qlibFolder is a folder in Qlib's format. It is safe for concurrent use.
//
//	calendars/day.txt               the times of all bars, one on a line, ascending
//	instruments/all.txt             symbol, first and last time of a range, separated by tabs
//	features/sh600000/close.day.bin float32, little-endian: the position in the calendar of the first
//	                                value, then a value for every time from there on, NaN where there
//	                                is none
//
// Folders of features have the symbol in lower case. The frequency, here day, may be another one,
// such as 1min. Prices are adjusted; $factor divides them into the quoted ones and multiplies
// volumes into shares.
//
// [openQlibFolder] reads what a folder holds and checks it; an error names file and line.
// [writeQlibFolder] makes a folder that Qlib reads bit for bit (cmd/peers/qlib_folder.py).
type qlibFolder struct {
	fs   fs.FS
	root string
	freq string
	// Calendar holds the times as they are written.
	Calendar []string
	// Ranges are those of the instruments file, in its order.
	Ranges []qlibRange
}

// qlibRange is a span of times in which a symbol is there, both included.
type qlibRange struct{ Symbol, From, To string }

// isQlib says whether a folder looks like one of Qlib's.
func isQlib(root string) bool {
	for _, name := range []string{"calendars", "features", "instruments"} {
		if info, err := os.Stat(path.Join(root, name)); err != nil || !info.IsDir() {
			return false
		}
	}
	return true
}

// openQlibFolder reads the calendar of a frequency (day, 1min; the only one there is if empty) and the
// instruments of a market (all if empty).
func openQlibFolder(root, freq, market string) (*qlibFolder, error) {
	f := &qlibFolder{fs: os.DirFS(root), root: root, freq: freq}
	if market == "" {
		market = "all"
	}
	if freq == "" {
		names, err := f.list("calendars", ".txt")
		if err != nil {
			return nil, err
		}
		names = slices.DeleteFunc(names, func(n string) bool { return strings.HasSuffix(n, "_future") })
		if len(names) != 1 {
			return nil, fmt.Errorf("%s: there are the calendars %v; the frequency must be given", path.Join(root, "calendars"), names)
		}
		f.freq = names[0]
	}
	err := f.lines(path.Join("calendars", f.freq+".txt"), func(line string) error {
		if n := len(f.Calendar); n > 0 && f.Calendar[n-1] >= line {
			return fmt.Errorf("%q does not come after %q", line, f.Calendar[n-1])
		}
		f.Calendar = append(f.Calendar, line)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(f.Calendar) == 0 {
		return nil, fmt.Errorf("%s: the calendar is empty", path.Join(root, "calendars", f.freq+".txt"))
	}
	err = f.lines(path.Join("instruments", market+".txt"), func(line string) error {
		cells := strings.Split(line, "\t")
		if len(cells) < 3 || cells[0] == "" || strings.ContainsAny(cells[0], "/\\") {
			return fmt.Errorf("%q; expected symbol, first and last time, separated by tabs", line)
		}
		r := qlibRange{Symbol: cells[0], From: strings.TrimSpace(cells[1]), To: strings.TrimSpace(cells[2])}
		if r.From > r.To {
			return fmt.Errorf("%s from %s to %s: the range ends before it begins", r.Symbol, r.From, r.To)
		}
		for _, o := range f.Ranges {
			if o.Symbol == r.Symbol && r.From <= o.To && o.From <= r.To {
				return fmt.Errorf("%s from %s to %s overlaps its range from %s to %s", r.Symbol, r.From, r.To, o.From, o.To)
			}
		}
		f.Ranges = append(f.Ranges, r)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(f.Ranges) == 0 {
		return nil, fmt.Errorf("%s: there are no instruments", path.Join(root, "instruments", market+".txt"))
	}
	return f, nil
}

// list names the files of a folder with a suffix, without it.
func (f *qlibFolder) list(dir, suffix string) ([]string, error) {
	entries, err := fs.ReadDir(f.fs, dir)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.root, err)
	}
	var names []string
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), suffix); ok && !e.IsDir() && !strings.HasPrefix(name, ".") {
			names = append(names, name)
		}
	}
	return names, nil
}

// writeQlibLines reads a text file without its empty lines.
func (f *qlibFolder) lines(name string, each func(line string) error) error {
	file, err := f.fs.Open(name)
	if err != nil {
		return fmt.Errorf("%s: %w", f.root, err)
	}
	defer file.Close()
	s := bufio.NewScanner(file)
	for n := 1; s.Scan(); n++ {
		line := strings.TrimRight(s.Text(), " \t\r")
		if line == "" {
			continue
		}
		if err := each(line); err != nil {
			return fmt.Errorf("%s:%d: %w", path.Join(f.root, name), n, err)
		}
	}
	if err := s.Err(); err != nil {
		return fmt.Errorf("%s: %w", path.Join(f.root, name), err)
	}
	return nil
}

func (f *qlibFolder) dir(symbol string) string { return path.Join("features", strings.ToLower(symbol)) }

// Fields lists the fields of a symbol, without $, sorted.
func (f *qlibFolder) Fields(symbol string) ([]string, error) {
	return f.list(f.dir(symbol), "."+f.freq+".bin")
}

// Bytes reads the file of a field, and its name within the folder.
func (f *qlibFolder) Bytes(symbol, field string) ([]byte, string, error) {
	name := path.Join(f.dir(symbol), field+"."+f.freq+".bin")
	raw, err := fs.ReadFile(f.fs, name)
	if err != nil {
		return nil, name, fmt.Errorf("%s: %w", f.root, err)
	}
	return raw, name, nil
}

// Decode reads the file of a field: the position of its first value in the calendar, and the
// values, NaN where there is none.
func (f *qlibFolder) Decode(raw []byte, name string) (start int, values []float32, err error) {
	fail := func(format string, args ...any) (int, []float32, error) {
		return 0, nil, fmt.Errorf("%s: %s", path.Join(f.root, name), fmt.Sprintf(format, args...))
	}
	if len(raw)%4 != 0 || len(raw) == 0 {
		return fail("%d bytes are not a number of float32", len(raw))
	}
	number := func(i int) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:])) }
	first := number(0)
	if !(first >= 0 && first < float32(len(f.Calendar))) || first != float32(math.Trunc(float64(first))) {
		return fail("it begins at %v, which is no position in a calendar of %d times", first, len(f.Calendar))
	}
	start = int(first)
	values = make([]float32, len(raw)/4-1)
	if start+len(values) > len(f.Calendar) {
		return fail("%d values from position %d on go beyond the calendar's %d times", len(values), start, len(f.Calendar))
	}
	for i := range values {
		values[i] = number(i + 1)
	}
	return start, values, nil
}
