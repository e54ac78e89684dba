package app

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs/market/ashare"
	"github.com/onnxrl/onnxrl/envs/market/bars"
	"github.com/onnxrl/onnxrl/envs/market/prepared"
	"github.com/onnxrl/onnxrl/envs/market/trading/feed"
	"github.com/onnxrl/onnxrl/envs/market/universe"
	"github.com/onnxrl/onnxrl/runtime/printable"
)

func (a *app) dataCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "data",
		Short: "Prepare and check market data",
		Long: `Reads bars of many assets, checks them, computes features and stores the data set that market environments use.

A configuration is the data section of an experiment, or a file that holds nothing else; - reads it from standard input.`,
	}
	cmd.AddCommand(a.dataInitCommand(), a.dataPrepareCommand(), a.dataInspectCommand(), a.dataConvertCommand(), a.dataLookaheadCommand(), a.dataWarmupCommand(), a.dataWindowsCommand(), a.dataLiveCommand(), a.dataFeedCommand())
	return cmd
}

// dataConfig reads the data section of a document, a file or a shipped experiment: the mapping
// under data or env.data, or the whole document where it has neither. The window of env.data is
// that of env. Edits are made to the document.
func (a *app) dataConfig(path string, sets []string) (prepared.Config, error) {
	c := prepared.Default()
	doc, err := a.document(path)
	if err != nil {
		return c, err
	}
	if err := doc.Set(sets...); err != nil {
		return c, err
	}
	section, ok, err := dataSection(doc)
	if err != nil {
		return c, err
	}
	if !ok {
		return c, doc.Decode(&c)
	}
	if _, alone := doc.Lookup("data"); alone {
		return c, section.Decode(&c)
	}
	window := c.Window
	if w, ok := doc.Lookup("env.window"); ok {
		if err := w.Decode(&window); err != nil {
			return c, err
		}
		if window < 1 {
			return c, w.Errorf("", "must be at least 1, is %d", window)
		}
	}
	c.Window = window
	if err := section.Decode(&c); err != nil {
		return c, err
	}
	if c.Window == 0 {
		c.Window = window
	}
	if c.Window != window {
		return c, section.Errorf("window", "the environment's window is %d: leave this key out", window)
	}
	return c, nil
}

func (a *app) dataPrepareCommand() *cobra.Command {
	var sets []string
	var out string
	var mapped bool
	cmd := &cobra.Command{
		Use:   "prepare CONFIG.yaml",
		Short: "Compute features and store the data set",
		Example: `  onnxrl data prepare demo
  onnxrl data prepare experiment.yaml --out runs/data/us16
  onnxrl data prepare experiment.yaml --set data.window=60 --out runs/data/us16-60
  onnxrl data prepare experiment.yaml --columns --out us16.columns  # trained on by env.data.stored: us16.columns`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.dataPrepare(cmd.Context(), args[0], sets, out, mapped)
		},
	}
	cmd.Flags().StringArrayVar(&sets, "set", nil, "edit the configuration, for instance --set data.window=60")
	cmd.Flags().StringVarP(&out, "out", "o", "", "folder to write (default: runs/data/ and the name of the configuration)")
	cmd.Flags().BoolVar(&mapped, "columns", false, "write one file of columns, which env.data.stored maps into memory")
	return cmd
}

func (a *app) dataPrepare(ctx context.Context, path string, sets []string, out string, mapped bool) error {
	a.begin("computing the features of %s: usually seconds, a minute for millions of bars", path)
	c, err := a.dataConfig(path, sets)
	if err != nil {
		return err
	}
	if out == "" {
		if out = filepath.Join("runs", "data", experiment.Name(path)); mapped {
			out += ".columns"
		}
	}
	start := time.Now()
	var w prepared.Written
	if mapped {
		var set *prepared.Set
		if set, w.Notes, err = prepared.Make(ctx, c); err == nil {
			err = cmp.Or(os.MkdirAll(filepath.Dir(out), 0o755), feed.SaveColumns(out, feed.FromSet(set)))
			w.Manifest = set.Manifest
		}
	} else {
		w, err = prepared.Write(ctx, c, out)
	}
	tellNotes(a.err, w.Notes) // what else is noted is in the manifest
	if err != nil {
		return err
	}
	m := &w.Manifest
	a.log.Info("data prepared", "seconds", time.Since(start).Seconds(), "t", m.T, "n", m.N, "f", m.F, "w", m.W, "rows_held", w.Held)
	if a.json {
		return a.printJSON(w.Manifest)
	}
	if err := printManifest(a.out, m); err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.out, "written to %s\n", out)
	return err
}

// readBars reads a configuration, and its rows for an analysis, and says what was found in them.
func (a *app) readBars(path string, sets []string) (c prepared.Config, data *bars.Data, err error) {
	if c, err = a.dataConfig(path, sets); err != nil {
		return c, nil, err
	}
	if data, err = prepared.Read(c); err == nil {
		tellNotes(a.err, data.Notes)
	}
	return c, data, err
}

// printManifest shows dimensions, ranges and notes, and the digest of a set that was stored.
func printManifest(out io.Writer, m *prepared.Manifest) error {
	w := printable.NewTable(out)
	fmt.Fprintf(w, "times\tT = %d\t%s to %s\n", m.T, m.From, m.To)
	fmt.Fprintf(w, "assets\tN = %d\t%s\n", m.N, shorten(m.Symbols, 16))
	names := make([]string, m.F)
	for i, f := range m.Features {
		names[i] = f.Name
	}
	fmt.Fprintf(w, "features\tF = %d\t%s\n", m.F, shorten(names, 8))
	fmt.Fprintf(w, "window\tW = %d\t%s\n", m.W, fmt.Sprintf("the first %s dropped, before any asset has all its features", plural(m.DroppedRows, "bar")))
	for _, r := range m.Ranges {
		fmt.Fprintf(w, "%s\t%d bars\t%s to %s, %d of %d assets tradable", r.Name, r.Bars, r.From, r.To, r.Tradable, m.N)
		if c := r.Members; c != nil {
			fmt.Fprintf(w, "; members %d at first, %d at last, %d to %d at a time; %d entered, %d left", c.First, c.Last, c.Least, c.Most, c.Entered, c.Left)
		}
		fmt.Fprintln(w)
	}
	if u := m.Universe; u != nil {
		fmt.Fprintf(w, "universe\t%s\t%d symbols, %d of them without rows; %s before one can be bought\n", u.Name, u.Symbols, len(u.Absent), plural(u.Warmup, "bar"))
	}
	if len(m.Quotes) > 0 {
		fmt.Fprintf(w, "quotes\t%s\n", strings.Join(m.Quotes, " "))
	}
	if m.DataSHA256 != "" {
		fmt.Fprintf(w, "data\t%s\t%.2f MB\n", m.DataSHA256[:min(12, len(m.DataSHA256))], float64(m.Files.Features.Bytes+m.Files.Prices.Bytes)/1e6)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, n := range m.Notes {
		fmt.Fprintf(out, "note: %s\n", n)
	}
	if slices.Contains(m.Quotes, bars.Factor.String()) && !slices.Contains(m.Quotes, bars.Dividend.String()) && !slices.Contains(m.Quotes, bars.Bonus.String()) {
		fmt.Fprintf(out, "note: accounts trade adjusted prices, or raw ones (account.prices: raw) with what the factor changes by booked as reinvested shares; dividends and splits are not known apart\n")
	}
	for _, r := range m.Quality {
		printJumps(out, r, true)
	}
	return nil
}

// printJumps lists the jumps of a symbol, or those that look like splits.
func printJumps(out io.Writer, r bars.SymbolReport, splits bool) {
	for _, j := range r.Jumps {
		like := "looks like no split"
		switch {
		case j.Like != "":
			like = "looks like a split or bonus shares, " + j.Like
		case splits:
			continue
		}
		fmt.Fprintf(out, "%s: jump on %s: the open is %.3f times the close before, which %s\n", r.Symbol, j.Date, j.Ratio, like)
	}
}

// shorten lists at most n names.
func shorten(names []string, n int) string {
	if len(names) <= n {
		return strings.Join(names, " ")
	}
	return strings.Join(names[:n], " ") + fmt.Sprintf(" and %d more", len(names)-n)
}

func (a *app) dataInspectCommand() *cobra.Command {
	var sets []string
	var rules string
	var policies int
	cmd := &cobra.Command{
		Use:   "inspect CONFIG.yaml|FOLDER|FILE",
		Short: "Report the quality of raw data, or describe prepared data",
		Long: `For a configuration, a file or a shipped experiment, or for a file or folder of bars, reads the rows and reports per symbol what is wrong with them:
duplicates, unsorted rows, prices that are not positive numbers, gaps, missing and zero volume, and jumps that look like
splits. For a folder or a file that onnxrl data prepare has written, describes the data set and checks its files.

With --rules ashare, compares raw daily bars with the rules of the Chinese exchanges of their days instead: prices outside the limits, closes at a
limit, days on which nothing else was traded, suspensions, and limit columns that say otherwise.

With --rules ashare --policies N, lets N random policies trade the bars of an experiment whose data.rules is ashare, and looks at every fill with
arithmetic of its own: limits, suspensions, lots, T+1, fees and cash to the fen.`,
		Example: `  onnxrl data inspect bars.csv
  onnxrl data inspect cn_daily.csv.gz --rules ashare --json
  onnxrl data inspect ashare --rules ashare --policies 20 --set env.data.source.path=cn_daily.csv.gz`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if policies > 0 {
				return a.auditRules(cmd.Context(), args[0], sets, rules, policies)
			}
			return a.dataInspect(args[0], sets, rules)
		},
	}
	cmd.Flags().StringVar(&rules, "rules", "", "compare with the rules of a market: ashare")
	cmd.Flags().IntVar(&policies, "policies", 0, "with --rules, look at the fills of that many random policies")
	cmd.Flags().StringArrayVar(&sets, "set", nil, "edit the configuration, for instance --set data.quality.jump=0.2")
	return cmd
}

func (a *app) dataInspect(path string, sets []string, rules string) error {
	if rules != "" && rules != "ashare" {
		return fmt.Errorf("--rules is %q, expected ashare", rules)
	}
	if _, err := os.Stat(filepath.Join(path, prepared.ManifestName)); err == nil {
		if rules != "" {
			return fmt.Errorf("%s is a prepared data set: --rules compares the bars that one is made from", path)
		}
		return a.inspectPrepared(path)
	}
	if feed.IsColumns(path) {
		return a.inspectColumns(path)
	}
	c, data, err := a.rawBars(path, sets, "")
	if err != nil {
		return err
	}
	if rules != "" {
		return a.inspectRules(ashare.Inspect(data))
	}
	q, err := bars.Inspect(data, c.Quality, c.Calendar, c.Source.AdjustVolume)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(q)
	}
	return printQuality(a.out, q)
}

// rawSection are the keys of a data section. Only those that say how rows are read and checked are
// decoded: a source alone has neither features nor a split.
type rawSection struct {
	Source        bars.Source            `yaml:"source"`
	Synthetic     configs.Kinded         `yaml:"synthetic"`
	Series        []bars.PublishedSource `yaml:"series"`
	Rules         string                 `yaml:"rules"`
	Quality       bars.Rules             `yaml:"quality"`
	Calendar      bars.Calendar          `yaml:"calendar"`
	Assets        []string               `yaml:"assets"`
	Universe      universe.Config        `yaml:"universe"`
	Window        configs.Section        `yaml:"window"`
	Features      configs.Section        `yaml:"features"`
	Normalization configs.Section        `yaml:"normalization"`
	Split         configs.Section        `yaml:"split"`
	DropUndefined configs.Section        `yaml:"drop_undefined"`
	Cache         configs.Section        `yaml:"cache"`
}

// rawBars returns the rows that a document, or a file or folder, has, with --set; see
// [app.rawConfig]. Bars of a size are made of ticks, unless it is empty.
func (a *app) rawBars(path string, sets []string, size string) (c prepared.Config, data *bars.Data, err error) {
	if c, err = a.rawConfig(path, sets); err != nil {
		return c, nil, err
	}
	if size != "" {
		c.Source.Bars = size
	}
	data, err = prepared.Rows(c)
	return c, data, err
}

// rawConfig returns where the rows of a document, or of a file or folder, are, with --set.
func (a *app) rawConfig(path string, sets []string) (c prepared.Config, err error) {
	c = prepared.Default()
	part := rawSection{Source: c.Source, Quality: c.Quality, Calendar: c.Calendar}
	var doc *configs.Document
	if ext := filepath.Ext(path); ext == ".yaml" || ext == ".yml" || path == experiment.StandardInput || experiment.Shipped(path) {
		doc, err = a.document(path)
	} else if doc, err = configs.Parse("--set", []byte("{}")); err == nil {
		err = doc.SetValue("source.path", path)
	}
	if err == nil {
		err = doc.Set(sets...)
	}
	if err != nil {
		return c, err
	}
	section, ok, err := dataSection(doc)
	switch {
	case err != nil:
	case ok:
		err = section.Decode(&part)
	default:
		err = doc.Decode(&part)
	}
	if err != nil {
		return c, err
	}
	c.Source, c.Synthetic, c.Series, c.Quality, c.Calendar, c.Assets = part.Source, part.Synthetic, part.Series, part.Quality, part.Calendar, part.Assets
	c.Universe, c.Rules = part.Universe, part.Rules
	return c, nil
}

// dataSection finds the data section of a document; ok is false where the document is one. An
// experiment without data is an error.
func dataSection(doc *configs.Document) (section configs.Section, ok bool, err error) {
	if section, ok = doc.Lookup("data"); ok {
		return section, true, nil
	}
	if section, ok = doc.Lookup("env.data"); ok {
		return section, true, nil
	}
	if kind, isExperiment := doc.Lookup("env.kind"); isExperiment {
		return section, false, kind.Errorf("", "this experiment has no data: its environment reads no bars")
	}
	return section, false, nil
}

func (a *app) inspectPrepared(dir string) error {
	set, err := prepared.Open(dir)
	if err != nil {
		return err
	}
	m := &set.Manifest
	if a.json {
		return a.printJSON(m)
	}
	if err := printManifest(a.out, m); err != nil {
		return err
	}
	fmt.Fprintln(a.out)
	w := printable.NewNumbers(a.out)
	if u := m.Universe; u != nil {
		fmt.Fprintln(w, "year\tmembers at first\tat last\tleast\tmost\tentered\tleft\t")
		for _, y := range u.Years {
			fmt.Fprintf(w, "%d\t%d\t%d\t%d\t%d\t%d\t%d\t\n", y.Year, y.First, y.Last, y.Least, y.Most, y.Entered, y.Left)
		}
		if err := w.Flush(); err != nil {
			return err
		}
		fmt.Fprintln(a.out)
	}
	fmt.Fprintln(w, "feature\tgroup\tunit\twarm-up\tmean\tstd\tmin\tmax\t")
	for _, f := range m.Features {
		mean, std := "-", "-"
		if f.Scaled {
			mean, std = fmt.Sprintf("%.5g", f.Mean), fmt.Sprintf("%.5g", f.Std)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\t%s\t%.5g\t%.5g\t\n", f.Name, f.Group, f.Unit, f.Warmup, mean, std, f.Min, f.Max)
	}
	return w.Flush()
}

// printQuality shows one line per symbol and the details below.
func printQuality(out io.Writer, q *bars.Quality) error {
	fmt.Fprintf(out, "%s, %s from %s to %s, %s\n%s\n\n", plural(len(q.Symbols), "symbol"), plural(q.Times, "time"), q.From, q.To, plural(len(q.Files), "file"), q.Adjustment)
	for _, text := range q.Warnings {
		fmt.Fprintf(out, "WARNING: %s\n\n", text)
	}
	w := printable.NewNumbers(out)
	fmt.Fprintln(w, "symbol\tfirst\tlast\trows\tduplicate\tconflict\tunsorted\tblank\tbad price\tinconsistent\topen off\tno volume\tneg. volume\tzero volume\tsuspended\tfilled\tlongest gap\tabsent at end\tjumps\tsplit-like\t")
	for _, r := range q.Symbols {
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t\n", r.Symbol, r.First, r.Last, r.Rows, r.Duplicates, r.Conflicts, r.Unsorted, r.Blank,
			r.BadPrices, r.Inconsistent, r.OpenOffRange, r.MissingVolume, r.NegativeVolume, r.ZeroVolume, r.Suspended, r.Filled, r.LongestGap, r.Absent, len(r.Jumps), r.SplitLike())
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(out)
	for _, r := range q.Symbols {
		if r.Problem != "" {
			fmt.Fprintf(out, "%s: %s\n", r.Symbol, strings.TrimPrefix(r.Problem, "symbol "+r.Symbol+": "))
		}
		for _, e := range r.Examples {
			fmt.Fprintf(out, "%s: %s\n", r.Symbol, e)
		}
		printJumps(out, r, false)
	}
	return nil
}
