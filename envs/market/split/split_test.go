package split

import (
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs/market/bars"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

func date(s string) bars.Date {
	d, err := bars.ParseDate(s)
	if err != nil {
		panic(err)
	}
	return d
}

func ranges(list ...string) Config {
	c := Default()
	for i, r := range []*Range{&c.Train, &c.Valid, &c.Test} {
		if 2*i+1 < len(list) && list[2*i] != "" {
			*r = Range{date(list[2*i]), date(list[2*i+1])}
		}
	}
	return c
}

func days(n int) []time.Time {
	var list []time.Time
	for i := range n {
		list = append(list, time.Date(2020, 1, 1+i, 0, 0, 0, 0, time.UTC))
	}
	return list
}

func TestResolve(t *testing.T) {
	c := ranges("2020-01-01", "2020-01-10", "2020-01-11", "2020-01-15", "2020-01-18", "2020-01-31")
	c.Purge, c.Embargo = 2, 1
	s, err := c.Resolve(days(25))
	if err != nil {
		t.Fatal(err)
	}
	// Two bars before validation are purged and its first is under embargo; two days lie between
	// validation and test already.
	if want := (Splits{Train: Span{0, 8}, Valid: Span{11, 15}, Test: Span{18, 25}}); s != want {
		t.Errorf("%+v, expected %+v", s, want)
	}
	if n := s.Named(); len(n) != 3 || n[2].Name != "test" || n[2].Len() != 7 {
		t.Errorf("named %+v", n)
	}
	// Intraday bars of the last day belong to the range.
	hours := []time.Time{time.Date(2020, 1, 2, 9, 30, 0, 0, time.UTC), time.Date(2020, 1, 2, 16, 0, 0, 0, time.UTC), time.Date(2020, 1, 3, 9, 30, 0, 0, time.UTC)}
	if s, err := ranges("2020-01-02", "2020-01-02").Resolve(hours); err != nil || s.Train != (Span{0, 2}) {
		t.Errorf("%+v: %v", s, err)
	}
}

func TestResolveRefuses(t *testing.T) {
	for name, c := range sorted.All(map[string]struct {
		config Config
		want   string
	}{
		"no train":      {ranges(), "train: must be two dates"},
		"reversed":      {ranges("2020-01-05", "2020-01-01"), "train: ends before it begins: 2020-01-05 to 2020-01-01"},
		"overlap":       {ranges("2020-01-01", "2020-01-05", "2020-01-05", "2020-01-09"), "valid: overlaps or comes before train"},
		"order":         {ranges("2020-01-11", "2020-01-15", "2020-01-01", "2020-01-09"), "valid: overlaps or comes before train"},
		"test in train": {ranges("2020-01-01", "2020-01-15", "", "", "2020-01-03", "2020-01-09"), "test: overlaps or comes before train"},
		"empty":         {ranges("2020-01-01", "2020-01-05", "2021-01-01", "2021-02-01"), "valid is empty: no data from 2021-01-01 to 2021-02-01; there are data from 2020-01-01 to 2020-01-20"},
		"purged to none": {func() Config {
			c := ranges("2020-01-01", "2020-01-03", "2020-01-04", "2020-01-09")
			c.Purge = 3
			return c
		}(), "has no bar left after purging 3"},
		"negative purge": {func() Config { c := ranges("2020-01-01", "2020-01-03"); c.Purge = -1; return c }(), "purge: must not be negative"},
	}) {
		if _, err := c.config.Resolve(days(20)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, expected %q", name, err, c.want)
		}
	}
	if _, err := ranges("2020-01-01", "2020-01-05").Resolve(nil); err == nil {
		t.Error("no times are accepted")
	}
}

func TestRangeIsWrittenAsItIsRead(t *testing.T) {
	doc, err := configs.Parse("test.yaml", []byte("train: [2000-01-03, 2010-12-31]\nvalid: [2011-01-03, 2018-12-31]\n"))
	if err != nil {
		t.Fatal(err)
	}
	c := Default()
	if err := doc.Decode(&c); err != nil {
		t.Fatal(err)
	}
	text, err := configs.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	again, err := configs.Parse("again.yaml", text)
	if err != nil {
		t.Fatal(err)
	}
	var d Config
	if err := again.Decode(&d); err != nil || !reflect.DeepEqual(d, c) {
		t.Errorf("%+v, expected %+v: %v\n%s", d, c, err, text)
	}
	for _, bad := range []string{"train: [2000-01-03]", "train: 2000-01-03", "train: [2000-01-03, 2000-13-01]", "train: [a, b]"} {
		doc, err := configs.Parse("test.yaml", []byte(bad))
		if err != nil {
			t.Fatal(err)
		}
		c := Default()
		if err := doc.Decode(&c); err == nil || !strings.Contains(err.Error(), "test.yaml:1:") {
			t.Errorf("%s: error %v", bad, err)
		}
	}
}

func TestCombinatorialPurgedVectors(t *testing.T) {
	var want struct {
		Groups  [][]int `json:"test_set_index"`
		Paths   int     `json:"n_test_paths"`
		Purge   [][]int `json:"train_purge1"`
		Embargo [][]int `json:"train_embargo1"`
	}
	data, err := os.ReadFile("testdata/purged_cv.json")
	if err == nil {
		err = json.Unmarshal(data, &want)
	}
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	for _, c := range []struct {
		cv    CombinatorialPurged
		train [][]int
	}{
		{CombinatorialPurged{Blocks: 3, TestBlocks: 2, Purge: 1}, want.Purge},
		{CombinatorialPurged{Blocks: 3, TestBlocks: 2, Embargo: 1}, want.Embargo},
	} {
		folds, err := c.cv.Folds(12)
		if err != nil {
			t.Fatal(err)
		}
		if len(folds) != 3 || c.cv.Paths() != want.Paths {
			t.Fatalf("%d folds and %d paths", len(folds), c.cv.Paths())
		}
		for i, f := range folds {
			compared++
			if !slices.Equal(f.Train, c.train[i]) || !slices.Equal(f.Groups, want.Groups[i]) || len(f.Test) != 8 {
				t.Errorf("fold %d: %+v, expected to train on %v", i, f, c.train[i])
			}
		}
	}
	if compared != 6 {
		t.Errorf("%d folds compared", compared)
	}
}

// No fold trains within reach of its test set, and every position is tested equally often.
func TestFoldsKeepTheirDistance(t *testing.T) {
	folds := 0
	for _, cv := range []CombinatorialPurged{{Blocks: 6, TestBlocks: 2, Purge: 3, Embargo: 2}, {Blocks: 5, TestBlocks: 1, Purge: 0, Embargo: 4}, {Blocks: 7, TestBlocks: 3, Purge: 1}} {
		list, err := cv.Folds(101)
		if err != nil {
			t.Fatal(err)
		}
		tested := make([]int, 101)
		for _, f := range list {
			folds++
			for _, x := range f.Test {
				tested[x]++
				for _, y := range f.Train {
					if y <= x && x-y <= cv.Purge || y > x && y-x <= cv.Purge+cv.Embargo {
						t.Fatalf("trains on %d and tests on %d", y, x)
					}
				}
			}
		}
		for i, n := range tested {
			if n != cv.Paths() {
				t.Fatalf("%d is tested %d times, expected %d", i, n, cv.Paths())
			}
		}
	}
	if folds != 15+5+35 {
		t.Errorf("%d folds", folds)
	}
	for _, err := range []error{
		second(CombinatorialPurged{Blocks: 3, TestBlocks: 3}.Folds(9)), second(CombinatorialPurged{Blocks: 9, TestBlocks: 1}.Folds(3)),
		second(CombinatorialPurged{Blocks: 40, TestBlocks: 20}.Folds(99)), second(CombinatorialPurged{Blocks: 2, TestBlocks: 1, Purge: 50}.Folds(9)),
	} {
		if err == nil {
			t.Error("impossible folds are accepted")
		}
	}
}

func second(_ []Fold, err error) error { return err }
