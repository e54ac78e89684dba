package bars

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// dataset writes a data set of Hugging Face: a file of three rows for each of the parts.
func dataset(t *testing.T, readme string, parts ...string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "data"), 0o755); err != nil {
		t.Fatal(err)
	}
	if readme != "" {
		if err := os.WriteFile(filepath.Join(dir, "README.md"), []byte(readme), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for i, name := range parts {
		d := &Data{Adjustment: Adjustment{By: "none"}, HasVolume: true, Series: []Series{{Symbol: "sh.600000"}}}
		for day := range 3 {
			d.Series[0].Records = append(d.Series[0].Records, Record{Bar: Bar{Time: time.Date(2024, 3, 1+3*i+day, 0, 0, 0, 0, time.UTC), Open: 1, High: 2, Low: 1, Close: float64(10*i + day), Volume: 5}})
		}
		if err := WriteTable(filepath.Join(dir, name), d); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestShards(t *testing.T) {
	part := func(split string, i, of int) string {
		return fmt.Sprintf("data/%s-%05d-of-%05d.parquet", split, i, of)
	}
	three := []string{part("train", 0, 3), part("train", 1, 3), part("train", 2, 3)}
	card := func(configs string) string { return "---\nlicense: mit\nconfigs:\n" + configs + "---\n# Bars\n\n---\n" }
	ran := 0
	for name, c := range sorted.All(longtest.Few(t, map[string]struct {
		readme string
		parts  []string
		subset string
		want   string // closes, or the error
	}{
		"no card":      {"", three, "", "0 1 2 10 11 12 20 21 22"},
		"no configs":   {"---\nlicense: mit\n---\n", three, "", "0 1 2 10 11 12 20 21 22"},
		"splits":       {card("- config_name: default\n  data_files:\n  - split: train\n    path: data/train-*\n  - split: test\n    path: data/test-*\n"), []string{part("train", 0, 1), part("test", 0, 1)}, "", "0 1 2 10 11 12"},
		"one path":     {card("- config_name: daily\n  data_files: \"**/train-*.parquet\"\n"), three[:0:0], "", `names the files "**/train-*.parquet", and there are none`},
		"lists":        {card("- config_name: x\n  data_files: [data/a.parquet, data/b.parquet]\n"), []string{"data/b.parquet", "data/a.parquet"}, "", "10 11 12 0 1 2"},
		"subset":       {card("- config_name: a\n  data_files: data/a.parquet\n- config_name: b\n  data_files: data/b.parquet\n"), []string{"data/a.parquet", "data/b.parquet"}, "b", "10 11 12"},
		"which subset": {card("- config_name: a\n  data_files: data/a.parquet\n- config_name: b\n  data_files: data/b.parquet\n"), []string{"data/a.parquet", "data/b.parquet"}, "", "has the subsets a, b: name one with source.subset"},
		"hole":         {"", []string{three[0], three[2]}, "", "train-00001-of-00003 is missing"},
		"bad card":     {card("- config_name: a\n  data_files: 7\n"), three, "", "data_files: 7 is neither a path nor a list"},
		"no yaml":      {"---\nconfigs: [\n---\n", three, "", "README.md: the front matter"},
	}, 4)) {
		s := DefaultSource()
		s.Path, s.Subset = dataset(t, c.readme, c.parts...), c.subset
		d, err := Read(s, nil)
		got := fmt.Sprint(err)
		if err == nil {
			var closes []string
			for _, r := range d.Series[0].Records {
				closes = append(closes, fmt.Sprint(r.Close))
			}
			got = strings.Join(closes, " ")
		}
		if got != c.want && (err == nil || !strings.Contains(got, c.want)) {
			t.Errorf("%s: %s", name, got)
		}
		ran++
	}
	if ran != longtest.Cases(t, 10, 4) {
		t.Errorf("%d cases", ran)
	}
}
