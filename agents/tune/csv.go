package tune

import (
	"encoding/csv"
	"io"
	"path/filepath"
	"strconv"

	"github.com/onnxrl/onnxrl/runtime/atomicfile"
)

// WriteCSV writes all trials as a table beside the log, with a column for each parameter.
func (s *Study) WriteCSV() error {
	paths := s.o.Config.Space.Paths()
	return atomicfile.WriteFile(filepath.Join(s.o.Dir, CSVFile), func(w io.Writer) error {
		out := csv.NewWriter(w)
		head := append([]string{"number", "state", "value", "evaluations", "seconds"}, paths...)
		if err := out.Write(append(head, "error")); err != nil {
			return err
		}
		for _, t := range s.Trials() {
			row := []string{strconv.Itoa(t.Number), t.State, strconv.FormatFloat(float64(t.Value), 'g', -1, 64), strconv.Itoa(len(t.Intermediate)), strconv.FormatFloat(t.Seconds, 'f', 3, 64)}
			for _, path := range paths {
				row = append(row, s.o.Config.Space.Text(path, t.Values[path]))
			}
			if err := out.Write(append(row, t.Error)); err != nil {
				return err
			}
		}
		out.Flush()
		return out.Error()
	})
}
