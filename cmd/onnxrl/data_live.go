package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"onnxrl/cmd/internal/publish"
	"onnxrl/configs"
	"onnxrl/envs/market/bars"
	"onnxrl/envs/market/live"
	"onnxrl/envs/market/prepared"
	"onnxrl/models/artifact"
)

// liveFlags are those of onnxrl data live.
type liveFlags struct {
	store storeFlag
	bars  string
	from  string
	warm  bool
}

func (a *app) dataLiveCommand() *cobra.Command {
	var f liveFlags
	cmd := &cobra.Command{
		Use:   "live RUN|REF --bars FILE",
		Short: "Trade on paper with a published market agent, from a file of bars as they would arrive",
		Long: `Gives the bars of a file one time after another to a published market agent and executes its orders on paper, beginning all in cash. What the agent sees and how
its orders are filled comes from its manifest alone, and is to the bit what a back-test of the same bars would have. Each time gives a line of JSON: value and
cash at the close, fills of the orders before, and the new orders.

Indicators remember their first bar: the file should begin where the data of the run began. With --warm, the agent goes on from the state that it was published
with instead, and bars before are skipped. Bars are adjusted as the run's data were, by columns of the file.

` + referenceHelp,
		Example: `  onnxrl data live runs/demo --bars shipped:market/us5_daily.parquet --from 2011-07-01`,
		Args:    cobra.ExactArgs(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.dataLive(cmd.Context(), args[0], &f) },
	}
	f.store.add(cmd)
	fl := cmd.Flags()
	fl.StringVar(&f.bars, "bars", "", "file, folder or pattern of bars")
	fl.StringVar(&f.from, "from", "", "date of the first decision, such as 2024-01-31 (default: the first with a whole window)")
	fl.BoolVar(&f.warm, "warm", false, "begin with the state that the agent was published with")
	_ = cmd.MarkFlagRequired("bars") // The flag is there.
	return cmd
}

// liveLine is a time as JSON; the keys are stable. Assets are named by symbol, and assets without a fill are left out.
type liveLine struct {
	Time      string             `json:"time"`
	Value     float64            `json:"value"`
	Cash      float64            `json:"cash"`
	Positions map[string]float64 `json:"positions"`
	Fills     []liveFill         `json:"fills"`
	Orders    map[string]string  `json:"orders"`
}

type liveFill struct {
	Asset  string  `json:"asset"`
	Shares float64 `json:"shares"`
	Price  float64 `json:"price"`
	Fee    float64 `json:"fee"`
}

// orderNames are the actions of an asset in the order of package trading.
var orderNames = [...]string{"buy", "sell", "hold"}

func (a *app) dataLive(ctx context.Context, target string, f *liveFlags) (err error) {
	v, done, err := marketAgent(target, f.store.path())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	c, err := a.compiler(ctx)
	if err != nil {
		return err
	}
	t, err := publish.NewTrader(ctx, v, c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	panel, err := liveBars(t.Feed.Pipeline(), f.bars)
	if err != nil {
		return err
	}
	from, begin, err := f.begin(v, t, panel)
	if err != nil {
		return err
	}
	return streamBars(ctx, a.out, t, panel, begin, from)
}

// marketAgent finds the version of a run directory, its best, or of a reference.
func marketAgent(target, store string) (artifact.Version, func() error, error) {
	if !isDir(target) {
		s, v, err := artifact.Find(target, store)
		if err != nil {
			return v, nil, err
		}
		return v, s.Close, nil
	}
	dir := filepath.Join(target, publish.StoreDir)
	s, err := artifact.Open(dir, artifact.Options{MustExist: true})
	if err != nil {
		return artifact.Version{}, nil, fmt.Errorf("%s is no run with a published policy: %w", target, err)
	}
	list, err := s.List()
	for i := len(list) - 1; i >= 0 && err == nil; i-- {
		for _, alias := range list[i].Aliases {
			if alias == publish.BestAlias {
				return list[i], s.Close, nil
			}
		}
	}
	return artifact.Version{}, nil, errors.Join(fmt.Errorf("%s has no version %q", dir, publish.BestAlias), err, s.Close())
}

// liveBars reads and checks the bars of a file as the pipeline's data were.
func liveBars(p live.Pipeline, path string) (*bars.Panel, error) {
	doc, err := configs.Parse("features.config", []byte(p.Config))
	if err != nil {
		return nil, err
	}
	section, ok := doc.Lookup("data")
	if !ok {
		return nil, errors.New("features.config: no data section")
	}
	c := prepared.Default()
	if err := section.Decode(&c); err != nil {
		return nil, err
	}
	c.Source.Path, c.Synthetic, c.Assets = path, configs.Kinded{}, p.Assets
	c.Calendar.To = bars.Date{} // The bars go on after those of the run.
	rows, err := prepared.Read(c)
	if err != nil {
		return nil, err
	}
	h, err := prepared.NewHistory(c, rows)
	if err != nil {
		return nil, err
	}
	return h.Panel, nil
}

// begin returns the time of the first decision, and the position of the first bars, which the feed's state leads up to.
func (f *liveFlags) begin(v artifact.Version, t *publish.Trader, p *bars.Panel) (from time.Time, begin int, err error) {
	if f.from != "" {
		// Times are compared as the panel has them.
		if from, err = time.ParseInLocation(time.DateOnly, f.from, p.Times[0].Location()); err != nil {
			return from, 0, fmt.Errorf("--from %s: expected a date such as 2024-01-31", f.from)
		}
	}
	if !f.warm {
		return from, 0, nil
	}
	state, next, err := publish.WarmState(v)
	if err != nil {
		return from, 0, err
	}
	if state == nil {
		return from, 0, errors.New("--warm: the agent was published without a state")
	}
	for begin < len(p.Times) && p.Times[begin].Before(next) {
		begin++
	}
	if begin == len(p.Times) || !p.Times[begin].Equal(next) {
		return from, 0, fmt.Errorf("--warm: the state goes on with the bars of %s, which the file does not have", next.Format(time.DateTime))
	}
	return from, begin, t.Feed.LoadState(state)
}

// streamBars trades and writes a line for each time from the first decision on.
func streamBars(ctx context.Context, out io.Writer, t *publish.Trader, p *bars.Panel, begin int, from time.Time) error {
	rows, lines := make([]live.Row, len(p.Symbols)), json.NewEncoder(out)
	decided := 0
	for at := begin; at < len(p.Times); at++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		live.RowsAt(p, at, rows)
		if err := t.Append(p.Times[at], rows); err != nil {
			return err
		}
		if !t.Feed.Ready() || p.Times[at].Before(from) {
			continue
		}
		account := t.Portfolio.Account()
		line := liveLine{Time: p.Times[at].Format(time.DateTime), Value: t.Portfolio.Value(), Cash: account.Cash(), Positions: map[string]float64{}, Fills: []liveFill{}, Orders: map[string]string{}}
		for i, q := range account.Positions() {
			line.Positions[p.Symbols[i]] = q
		}
		if decided > 0 {
			for _, x := range account.Fills() {
				line.Fills = append(line.Fills, liveFill{Asset: p.Symbols[x.Asset], Shares: x.Shares, Price: x.Price, Fee: x.Fee})
			}
		}
		orders, err := t.Decide()
		if err != nil {
			return err
		}
		if err := t.Portfolio.Decide(orders); err != nil {
			return err
		}
		for i, o := range orders {
			line.Orders[p.Symbols[i]] = orderNames[o]
		}
		decided++
		if err := lines.Encode(line); err != nil {
			return err
		}
	}
	if decided == 0 {
		return errors.New("the bars do not lead to a decision: there is no whole window on or after the first date")
	}
	return nil
}
