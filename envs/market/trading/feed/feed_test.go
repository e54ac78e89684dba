package feed_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/envtest"
	"github.com/onnxrl/onnxrl/envs/market/prepared"
	"github.com/onnxrl/onnxrl/envs/market/trading"
	"github.com/onnxrl/onnxrl/envs/market/trading/feed"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// write returns daily bars of three stocks, of which the last is listed 60 days after the others.
func write(t *testing.T) string {
	t.Helper()
	s := rng.New(1).Stream()
	text := new(strings.Builder)
	fmt.Fprintln(text, "date,symbol,open,high,low,close,volume")
	for day := range 260 {
		for i, symbol := range []string{"AA", "BB", "CC"} {
			if i == 2 && day < 60 {
				continue
			}
			p := 20 + 5*s.Float64()
			fmt.Fprintf(text, "%s,%s,%.4f,%.4f,%.4f,%.4f,%d\n", time.Date(2020, 1, 1+day, 0, 0, 0, 0, time.UTC).Format(time.DateOnly), symbol, p, p+1, p-1, p+0.5, 1000+day)
		}
	}
	return text.String()
}

// TestFromSet prepares data as a user does and trades them.
func TestFromSet(t *testing.T) {
	set := prepare(t, write(t))
	d := feed.FromSet(set)
	m := d.Market
	if &m.X[0] != &set.X.Float32s()[0] || &m.Close[0] != &set.Close[0] || &m.Open[0] != &set.Open[0] {
		t.Error("features or prices are copied")
	}
	if err := m.Validate(); err != nil {
		t.Fatal(err)
	}
	late, always := 0, 0
	for b := range m.Len() {
		if m.Tradable[b*3+2] == 0 {
			late++
		}
		if m.Tradable[b*3] == 0 {
			always++
		}
	}
	if late == 0 || always != 0 || m.Assets[2] != "CC" || len(m.Features) != set.Manifest.F {
		t.Errorf("the late stock is closed on %d days, the first one on %d", late, always)
	}
	source, err := trading.NewSource(m, trading.Defaults())
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, split := range []envs.Split{envs.Train, envs.Valid, envs.Test} {
		r := envtest.Run(t, func() (envs.Env, error) { return source.Env(d.Splits[split]) }, envtest.Options{Steps: 300})
		ran += r.Episodes
	}
	if ran < 10 {
		t.Errorf("%d episodes", ran)
	}
}

func writeFile(path, text string) error { return os.WriteFile(path, []byte(text), 0o600) }

func prepare(t *testing.T, text string) *prepared.Set {
	t.Helper()
	file := t.TempDir() + "/bars.csv"
	if err := writeFile(file, text); err != nil {
		t.Fatal(err)
	}
	doc, err := configs.Parse("data.yaml", []byte("split: {train: [2020-01-01, 2020-05-31], valid: [2020-06-01, 2020-07-31], test: [2020-08-01, 2020-09-15]}"))
	if err != nil {
		t.Fatal(err)
	}
	c := prepared.Default()
	c.Source.Path = file
	if err := doc.Decode(&c); err != nil {
		t.Fatal(err)
	}
	rows, err := prepared.Read(c)
	if err != nil {
		t.Fatal(err)
	}
	set, err := prepared.Build(c, rows)
	if err != nil {
		t.Fatal(err)
	}
	return set
}
