package app

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs/market/bars"
	"github.com/onnxrl/onnxrl/envs/market/prepared"
	"github.com/onnxrl/onnxrl/runtime/atomicfile"
)

// initSection is the data section that data init writes: what differs from the defaults.
type initSection struct {
	Source struct {
		Path        string `yaml:"path" json:"path"`
		Preset      string `yaml:"preset,omitzero" json:"preset"`
		Instruments string `yaml:"instruments,omitzero" json:"instruments,omitzero"`
		Frequency   string `yaml:"frequency,omitzero" json:"frequency,omitzero"`
		Subset      string `yaml:"subset,omitzero" json:"subset,omitzero"`
		Bars        string `yaml:"bars,omitzero" json:"bars,omitzero"`
		Exchange    string `yaml:"exchange,omitzero" json:"exchange,omitzero"`
		Timezone    string `yaml:"timezone,omitzero" json:"timezone,omitzero"`
	} `yaml:"source" json:"source"`
	Split struct {
		Train []string `yaml:"train,flow" json:"train"`
		Valid []string `yaml:"valid,flow" json:"valid"`
		Test  []string `yaml:"test,flow" json:"test"`
	} `yaml:"split,omitempty" json:"split"`
}

// initReport is what data init has found.
type initReport struct {
	Data    initSection `json:"data"`
	Out     string      `json:"out,omitempty"`
	Symbols int         `json:"symbols"`
	Rows    int         `json:"rows"`
	Times   int         `json:"times"`
	From    string      `json:"from"`
	To      string      `json:"to"`
	// Missing are what the data do not have and what follows from that.
	Missing []string `json:"missing"`
	Notes   []string `json:"notes"`
}

func (a *app) dataInitCommand() *cobra.Command {
	var out, size string
	var s bars.Source
	cmd := &cobra.Command{
		Annotations: map[string]string{keepsReferences: "true"},
		Use:         "init FOLDER|FILE",
		Short:       "Write the data section, or an experiment, for market data",
		Long: `Finds out how market data are read. They are CSV, Parquet or Arrow with the columns of AkShare, TuShare, Wind, Baostock, Yahoo (yfinance), Stooq or Binance or with the usual names, a folder in Qlib's format, a data set of Hugging Face, or ticks. Writes the data section with a split by time (70, 15 and 15 % of the days). Names the exchange whose calendar the days agree with and, where an hour is repeated when summer ends, the time zone. Says what the data lack and what follows from that.

With --out, writes an experiment that onnxrl train runs. Its other settings are those of the shipped experiment synthetic_market;
onnxrl bench learn 'synthetic_*' shows what they learn in markets of which the best policy is known.`,
		Example: `  onnxrl data init cn_daily.csv.gz
  onnxrl data init ~/.qlib/qlib_data/cn_data --instruments csi300 --out experiment.yaml
  onnxrl data init ticks.parquet --bars volume=100000 --json`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			s.Path = args[0]
			return a.dataInit(s, size, out)
		},
	}
	cmd.Flags().StringVarP(&out, "out", "o", "", "write an experiment into this file, which must not exist")
	cmd.Flags().StringVar(&s.Instruments, "instruments", "", "file of a Qlib folder that lists its symbols, such as csi300")
	cmd.Flags().StringVar(&s.Frequency, "frequency", "", "calendar of a Qlib folder, such as day or 1min")
	cmd.Flags().StringVar(&s.Subset, "subset", "", "subset of a data set of Hugging Face")
	cmd.Flags().StringVar(&size, "bars", "", "size of the bars that are made of ticks (default 5m)")
	return cmd
}

func (a *app) dataInit(given bars.Source, size, out string) error {
	if out != "" {
		if _, err := os.Stat(out); err == nil {
			return fmt.Errorf("data init: %s is there already", out)
		}
	}
	s, err := bars.Detect(given)
	if err != nil {
		return fmt.Errorf("data init: %w", err)
	}
	if size != "" {
		s.Bars = size
	}
	data, err := bars.Read(s, nil)
	if err != nil {
		return fmt.Errorf("data init: %w", err)
	}
	s.Timezone = data.Zone
	if s.Exchange = data.LikelyExchange(); s.Exchange != "" && s.Bars != "" {
		if data, err = bars.Read(s, nil); err != nil { // bars leave no session
			return fmt.Errorf("data init: %w", err)
		}
	}
	r := &initReport{Out: out, Missing: data.Lacks(s.Exchange), Notes: []string{data.Adjustment.String()}}
	src := &r.Data.Source
	src.Path, src.Instruments, src.Frequency, src.Subset, src.Bars, src.Exchange, src.Timezone = s.Path, s.Instruments, s.Frequency, s.Subset, s.Bars, s.Exchange, s.Timezone
	if s.Preset != "auto" {
		src.Preset = s.Preset
	}
	c := prepared.Default()
	q, err := bars.Inspect(data, c.Quality, c.Calendar, s.AdjustVolume)
	if err != nil {
		return fmt.Errorf("data init: %w", err)
	}
	r.Times, r.From, r.To, r.Symbols = q.Times, q.From, q.To, len(q.Symbols)
	r.Notes = append(r.Notes, q.Warnings...)
	r.Notes = append(r.Notes, prepared.Findings(q.Symbols, c.Quality)...)
	for _, report := range q.Symbols {
		if r.Rows += report.Rows; report.Problem != "" {
			r.Notes = append(r.Notes, report.Problem)
		}
	}
	if err := r.splitDays(data); err != nil {
		if out != "" {
			return fmt.Errorf("data init: %w", err)
		}
		r.Notes = append(r.Notes, err.Error())
	}
	section, err := configs.Marshal(map[string]any{"data": r.Data})
	if err != nil {
		return err
	}
	if out != "" {
		if err := atomicfile.WriteFile(out, func(w io.Writer) error { return r.experiment(w, string(section)) }); err != nil {
			return fmt.Errorf("data init: %w", err)
		}
	}
	if a.json {
		return a.printJSON(r)
	}
	fmt.Fprintf(a.out, "# %s of %s from %s to %s\n", plural(r.Times, "time"), plural(r.Symbols, "symbol"), r.From, r.To)
	for _, text := range r.Missing {
		fmt.Fprintf(a.out, "# lacks %s\n", text)
	}
	for _, text := range r.Notes {
		fmt.Fprintf(a.out, "# %s\n", strings.ReplaceAll(text, "\n", " "))
	}
	if out != "" {
		_, err = fmt.Fprintf(a.out, "%s is written: onnxrl train %s\n", out, out)
		return err
	}
	_, err = a.out.Write(section)
	return err
}

// splitDays gives training 70 % of the days, and validation and test 15 % each.
func (r *initReport) splitDays(data *bars.Data) error {
	seen := map[string]bool{}
	for _, s := range data.Series {
		for i := range s.Records {
			seen[bars.NewDate(s.Records[i].Time).String()] = true
		}
	}
	days := make([]string, 0, len(seen))
	for day := range seen {
		days = append(days, day)
	}
	slices.Sort(days)
	n := len(days)
	a, b := n*70/100, n*85/100
	if a < 1 || b <= a || n <= b {
		return fmt.Errorf("there are %s: too few to split by time", plural(n, "day"))
	}
	s := &r.Data.Split
	s.Train, s.Valid, s.Test = []string{days[0], days[a-1]}, []string{days[a], days[b-1]}, []string{days[b], days[n-1]}
	return nil
}

// initEpisode is the least number of times of the training split from which on episodes begin
// anywhere in it, twice as many as they last.
const initEpisode = 500

// experiment writes an experiment with a data section. The other settings are those of a shipped
// one, which bench learn shows to learn what there is to know.
func (r *initReport) experiment(w io.Writer, section string) error {
	doc, err := experiment.Document("synthetic_market")
	if err != nil {
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# Written by onnxrl data init: %s of %s from %s to %s.\n", plural(r.Times, "time"), plural(r.Symbols, "symbol"), r.From, r.To)
	for _, text := range r.Missing {
		fmt.Fprintf(&b, "# The data lack %s.\n", text)
	}
	b.WriteString("# The settings are those of the shipped experiment synthetic_market; onnxrl bench learn 'synthetic_*'\n# shows what they learn where it is known what there is to learn.\nseed: 1\nenv:\n  kind: trading\n")
	copied := func(indent, path string) error {
		s, ok := doc.Lookup(path)
		if !ok {
			return fmt.Errorf("synthetic_market has no %s", path)
		}
		text, err := configs.Marshal(map[string]any{path[strings.LastIndex(path, ".")+1:]: s})
		for line := range strings.Lines(string(text)) {
			b.WriteString(indent + line)
		}
		return err
	}
	err = copied("  ", "env.window")
	if r.Times*70/100 >= initEpisode {
		err = errors.Join(err, copied("  ", "env.episode"))
	}
	for line := range strings.Lines(section) {
		b.WriteString("  " + line)
	}
	if err := errors.Join(err, copied("    ", "env.data.features"), copied("", "wrappers"), copied("", "agent"), copied("", "train")); err != nil {
		return err
	}
	_, err = io.WriteString(w, b.String())
	return err
}
