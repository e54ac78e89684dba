package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/onnxrl/onnxrl/agents/livetrade"
	"github.com/onnxrl/onnxrl/agents/livetrade/board"
	"github.com/onnxrl/onnxrl/agents/publish"
	"github.com/onnxrl/onnxrl/agents/trader"
	"github.com/onnxrl/onnxrl/envs/risk"
	"github.com/onnxrl/onnxrl/models/artifact"
)

// liveFlags are those of onnxrl data live.
type liveFlags struct {
	store     storeFlag
	bars      string
	follow    bool
	from      string
	warm      bool
	positions string
	metrics   string
	sets      []string
}

func (a *app) dataLiveCommand() *cobra.Command {
	var f liveFlags
	cmd := &cobra.Command{
		Use:   "live RUN|REF --bars FILE",
		Short: "Trade on paper with a published agent, from bars as they arrive",
		Long: `Gives bars one time after another to a published market agent and executes its orders on paper. What the agent sees and how its orders are filled comes from its
manifest, edited with --set, and is to the bit what a back-test of the same bars would have. Each time gives a line of JSON: value and cash at the close, fills of
the orders before, and the new orders. Of an agent whose actions are target weights these are the targets, that of the cash by the name cash.

Bars are those of a file, a folder or a pattern, sorted by time. With --follow, rows appended to a CSV file are waited for until SIGTERM or Ctrl-C; - reads rows from
stdin until it ends. Such rows come in the order of time. A time is decided on when every asset has its row, when a row of a later time is there, or at an empty line;
a line without its end waits for the rest. So decisions depend on the rows alone: whoever was stopped at any byte begins again with the same rows and comes to the
same orders. A file that is cut off is read again, and one that takes its name is read after it. What is skipped or mended is named on stderr with its line.

` + referenceHelp,
		Example: `  onnxrl data live runs/demo --bars shipped:market/us5_daily.parquet --from 2011-07-01
  onnxrl data live runs/demo --bars today.csv --follow --positions held.json
  tail -n +1 -F today.csv | onnxrl data live runs/demo --bars - --set env.data.source.columns.close=last`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.dataLive(cmd.Context(), args[0], &f) },
	}
	f.store.add(cmd)
	fl := cmd.Flags()
	fl.StringVar(&f.bars, "bars", "", "file, folder or pattern of bars; - is stdin")
	fl.BoolVar(&f.follow, "follow", false, "wait for rows that are appended to the file")
	fl.StringVar(&f.from, "from", "", "date of the first decision, such as 2024-01-31 (default: the first with a whole window)")
	fl.BoolVar(&f.warm, "warm", false, "begin with the state that the agent was published with")
	fl.StringVar(&f.positions, "positions", "", "file of the shares and the cash to begin with, as JSON or CSV")
	fl.StringVar(&f.metrics, "metrics", "", "file to write the portfolio's state and its limits on risk to, in the text format of Prometheus")
	fl.StringArrayVar(&f.sets, "set", nil, "edit the agent's configuration of data and environment, for instance --set env.data.quality.duplicates=first")
	_ = cmd.MarkFlagRequired("bars") // The flag is there.
	return cmd
}

// liveLine is a time as JSON; the keys are stable. Assets are named by symbol, and assets without a
// fill are left out.
type liveLine struct {
	Time  string  `json:"time"`
	Value float64 `json:"value"`
	Cash  float64 `json:"cash"`
	// PnL is the gain since the first line, and PnLDay that of the day.
	PnL    float64 `json:"pnl"`
	PnLDay float64 `json:"pnl_day"`
	// PnLFrom has the values that they are counted from, for a later --positions.
	PnLFrom   *liveGains         `json:"pnl_from"`
	Positions map[string]float64 `json:"positions"`
	// Weights are the shares of the value, that of the cash by the name cash.
	Weights map[string]float64 `json:"weights,omitempty"`
	Fills   []board.Fill       `json:"fills"`
	Orders  map[string]string  `json:"orders,omitempty"`
	// Targets are target weights, that of the cash by the name cash, of agents whose actions these
	// are; Orders are those of others.
	Targets map[string]float64 `json:"targets,omitempty"`
	Risk    *liveRisk          `json:"risk"`
}

type liveGains struct {
	First float64 `json:"first"`
	Day   float64 `json:"day"`
}

// orderNames are the actions of an asset in the order of package trading.
var orderNames = [...]string{"buy", "sell", "hold"}

func (a *app) dataLive(ctx context.Context, target string, f *liveFlags) (err error) {
	if f.follow && f.bars == "-" {
		return errors.New("--follow: stdin is followed anyway, until it ends")
	}
	v, done, err := marketAgent(target, f.store.path())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	c, err := a.compiler(ctx)
	if err != nil {
		return err
	}
	t, err := trader.New(ctx, v, c, f.sets...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	held, err := readHoldings(f.positions, t)
	if err != nil {
		return err
	}
	in, err := a.openLiveBars(t.Feed.Pipeline(), f)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	s := liveSession{trader: t, in: in, out: jsonOutput{w: a.out}, held: held, say: func(text string) { a.say("%s", text) }}
	if f.metrics != "" {
		s.metrics = newLiveMetrics(f.metrics)
	}
	t.Portfolio.Account().Risk().OnAlert = func(x risk.Alert) { s.say(x.String()) }
	if err := s.begin(v, f); err != nil {
		return err
	}
	err = s.run(ctx)
	if f.follow && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		// This is how following ends.
		return nil
	}
	return err
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

// liveSession is an agent that trades on bars.
type liveSession struct {
	trader *trader.Trader
	in     liveBars
	out    jsonOutput
	held   *holdings // nil begins with the environment's cash
	// from is the time of the first decision, warm that of the first bars where the feed's state
	// leads up to them.
	from, warm time.Time
	decided    int
	filling    bool // orders were decided at the bar before
	say        func(string)
	metrics    *liveMetrics // nil without
	unsold     bool         // at the bar before
	gains      livetrade.Gains
}

// begin prepares the feed and the account.
func (s *liveSession) begin(v artifact.Version, f *liveFlags) (err error) {
	if f.from != "" {
		// Times are compared as the bars have them.
		if s.from, err = time.ParseInLocation(time.DateOnly, f.from, s.in.location()); err != nil {
			return fmt.Errorf("--from %s: expected a date such as 2024-01-31", f.from)
		}
	}
	if f.warm {
		state, next, err := trader.WarmState(v)
		if err != nil {
			return err
		}
		if state == nil {
			return errors.New("--warm: the agent was published without a state")
		}
		if err := s.trader.Feed.LoadState(state); err != nil {
			return err
		}
		s.warm = next
	}
	if s.held == nil || s.held.resumes() {
		return nil
	}
	return s.trader.Portfolio.Hold(s.held.positions, s.held.cash)
}

// run trades until the bars end and writes a line for each time from the first decision on.
func (s *liveSession) run(ctx context.Context) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		at, rows, err := s.in.Next(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if !s.warm.IsZero() {
			if at.Before(s.warm) {
				continue
			}
			if !at.Equal(s.warm) {
				return fmt.Errorf("--warm: the state goes on with the bars of %s, which are not there", s.warm.Format(time.DateTime))
			}
			s.warm = time.Time{}
		}
		if err := s.trader.Append(at, rows); err != nil {
			return err
		}
		if err := s.bar(at); err != nil {
			return err
		}
	}
	switch {
	case !s.warm.IsZero():
		return fmt.Errorf("--warm: the state goes on with the bars of %s, which are not there", s.warm.Format(time.DateTime))
	case s.held.resumes():
		return fmt.Errorf("--positions: there are no bars of %s, the time of the positions", s.held.time)
	case s.decided == 0 && !s.filling:
		return errors.New("the bars do not lead to a decision: there is no whole window on or after the first date")
	}
	return nil
}

// bar decides at a bar that the trader has seen.
func (s *liveSession) bar(at time.Time) error {
	t := s.trader
	if s.held.resumes() {
		name := at.Format(time.DateTime)
		switch {
		case name < s.held.time:
			return nil
		case name > s.held.time:
			return fmt.Errorf("--positions: there are no bars of %s, the time of the positions", s.held.time)
		case !t.Feed.Ready():
			return fmt.Errorf("--positions: there is no whole window at %s, the time of the positions", name)
		}
		if err := t.Portfolio.Resume(s.held.positions, s.held.cash, s.held.risk); err != nil {
			return fmt.Errorf("--positions: %w", err)
		}
		if s.held.risk == nil {
			s.say("--positions: there is no risk.memory: drawdown, CVaR and turnover, and the limits on them, begin again")
		}
		s.filling = true
		if from := s.held.gains; from != nil {
			s.gains = livetrade.Gains{Begun: true, First: from.First, Before: from.Day, Last: t.Portfolio.Value(), At: at}
		}
		held := s.held
		s.held = nil
		if t.Weighs() {
			return t.Portfolio.Rebalance(held.targets)
		}
		return t.Portfolio.Decide(held.orders)
	}
	if !t.Feed.Ready() || at.Before(s.from) {
		return nil
	}
	symbols, account := t.Feed.Pipeline().Assets, t.Portfolio.Account()
	line := liveLine{Time: at.Format(time.DateTime), Value: t.Portfolio.Value(), Cash: account.Cash(), Positions: map[string]float64{}, Fills: []board.Fill{}}
	closes, prices := t.Portfolio.Closes(), map[string]float64{}
	for i, q := range account.Positions() {
		line.Positions[symbols[i]], prices[symbols[i]] = q, closes[i]
	}
	s.gains.Add(at, line.Value)
	line.PnLFrom = &liveGains{s.gains.First, s.gains.Before}
	line.PnL, line.PnLDay, line.Weights = s.gains.PnL(), s.gains.Day(), board.Weights(line.Value, line.Cash, line.Positions, prices)
	if s.filling {
		for _, x := range account.Fills() {
			line.Fills = append(line.Fills, board.Fill{Asset: symbols[x.Asset], Shares: x.Shares, Price: x.Price, Fee: x.Fee})
		}
	}
	line.Risk = s.risk(at)
	if err := s.decide(&line, symbols); err != nil {
		return err
	}
	s.decided++
	s.filling = true
	if err := s.out.Encode(line); err != nil || s.metrics == nil {
		return err
	}
	return s.metrics.write(at, &line)
}

// decide takes the agent's decision and writes it into a line.
func (s *liveSession) decide(line *liveLine, symbols []string) error {
	t := s.trader
	if t.Weighs() {
		weights, err := t.Weigh()
		if err != nil {
			return err
		}
		line.Targets = map[string]float64{}
		for i, w := range weights {
			line.Targets[targetName(symbols, i)] = w
		}
		return t.Portfolio.Rebalance(weights)
	}
	orders, err := t.Decide()
	if err != nil {
		return err
	}
	line.Orders = map[string]string{}
	for i, o := range orders {
		line.Orders[symbols[i]] = orderNames[o]
	}
	return t.Portfolio.Decide(orders)
}

// targetName is what the i-th target weight is of: an asset or, last, the cash.
func targetName(symbols []string, i int) string {
	if i < len(symbols) {
		return symbols[i]
	}
	return cashSymbol
}
