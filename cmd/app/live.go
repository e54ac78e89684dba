package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/onnxrl/onnxrl/agents/livetrade"
	"github.com/onnxrl/onnxrl/agents/livetrade/board"
	"github.com/onnxrl/onnxrl/agents/publish"
	"github.com/onnxrl/onnxrl/agents/trader"
	"github.com/onnxrl/onnxrl/envs/market/broker"
	"github.com/onnxrl/onnxrl/envs/market/stream"
	"github.com/onnxrl/onnxrl/export/serve/server"
	"github.com/onnxrl/onnxrl/models/artifact"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/objects"
)

// liveServiceFlags are those of onnxrl live.
type liveServiceFlags struct {
	store  storeFlag
	sets   []string
	replay bool
	repair bool
}

func (a *app) liveCommand() *cobra.Command {
	var f liveServiceFlags
	cmd := &cobra.Command{
		Use:   "live CONFIG.yaml",
		Short: "Trade with a published agent as a service, from a stream of bars",
		Long: `Trades with a published market agent from bars as they arrive, and publishes what it decides: signals, orders, fills, positions and what limits on risk have done.

  name: demo                        # begins the ids of orders
  policy: runs/demo                 # or a reference of a store
  state: runs/live                  # its journal and its snapshots
  source: {kind: kafka, brokers: [localhost:9092], topic: market.bars}
  sink: {kind: kafka, brokers: [localhost:9092]}
  bars: {grace: 2s, revised: last}  # late and revised bars
  risk: {stale: {after: 5m, then: kill}, orders: {per_minute: 60, then: kill}}

Whatever arrives is in the journal of the state directory before anything follows from it, and decisions are a function of the journal alone. So a service that ended in any way
goes on where it was: nothing is decided twice and nothing left out. With --replay the journal is read again and the records that it leads to are compared, byte for byte,
with those that were published; a difference is an error. A journal that is damaged before its end is an error, too; --repair keeps what leads on, and says what is lost.

The kill switch holds or flattens positions (risk.kill) until it is taken back. It is the file that kill_file names, SIGUSR1 (SIGUSR2 takes it back), or a message on the topic or the
page of the service. Ctrl-C and SIGTERM write a snapshot and stop; the positions remain.

` + referenceHelp,
		Example: `  onnxrl live live.yaml
  onnxrl live live.yaml --set policy=demo@best --set source.kind=file
  onnxrl live live.yaml --replay`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.repair {
				return saying("live", a.liveRepair(args[0], f.sets))
			}
			return saying("live", a.live(cmd.Context(), args[0], &f))
		},
	}
	f.store.add(cmd)
	fl := cmd.Flags()
	fl.StringArrayVar(&f.sets, "set", nil, "edit the document, for instance --set bars.grace=5s")
	fl.BoolVar(&f.replay, "replay", false, "compare what the journal leads to with what was published, and trade nothing")
	fl.BoolVar(&f.repair, "repair", false, "keep what is whole of a journal that is damaged before its end, say what is lost, and trade nothing")
	cmd.MarkFlagsMutuallyExclusive("replay", "repair")
	return cmd
}

// liveSummary is what onnxrl live prints when it ends; the keys are stable.
type liveSummary struct {
	Name      string          `json:"name"`
	Policy    string          `json:"policy"`
	Decisions uint64          `json:"decisions"`
	Time      string          `json:"time,omitempty"` // of the last decision
	Value     float64         `json:"value"`
	Cash      float64         `json:"cash"`
	Killed    bool            `json:"killed"`
	Bars      stream.Counters `json:"bars"`
	// Reconnects is how often the source has connected again, of one that is connected.
	Reconnects int64 `json:"reconnects,omitempty"`
}

// liveReplay is what onnxrl live --replay prints; the keys are stable.
type liveReplay struct {
	Name      string `json:"name"`
	Events    int64  `json:"events"`
	Decisions uint64 `json:"decisions"`
	// From is the batch of the snapshot that the replay began with, 0 for the beginning.
	From    uint64 `json:"from"`
	Records int    `json:"records"`
	Equal   bool   `json:"equal"`
}

// liveRepaired is what onnxrl live --repair prints; the keys are stable.
type liveRepaired struct{ livetrade.Repaired }

// Print writes the report.
func (r *liveRepaired) Print(w io.Writer) error {
	_, err := fmt.Fprintf(w, "the journal has events %d to %d\n", r.From, r.Next-1)
	for i := range r.Lost {
		if err == nil {
			_, err = fmt.Fprintf(w, "  lost: %v\n", &r.Lost[i])
		}
	}
	if err == nil && r.Dropped > 0 {
		_, err = fmt.Fprintf(w, "  %d events behind that are set aside: nothing leads to them. Messages are read again from the source; commands and what a broker has reported are not\n", r.Dropped)
	}
	return err
}

// liveRepair repairs the journal of a service that has ended.
func (a *app) liveRepair(path string, sets []string) error {
	c, err := a.liveDocument(path, sets)
	if err != nil {
		return err
	}
	r, err := livetrade.Repair(c.State)
	if err != nil {
		return err
	}
	return a.printTable(&liveRepaired{r}, nil)
}

// liveDocument reads the document of a service.
func (a *app) liveDocument(path string, sets []string) (livetrade.Config, error) {
	c := livetrade.Defaults()
	doc, err := a.document(path)
	if err == nil {
		err = doc.Set(sets...)
	}
	if err == nil {
		err = doc.Decode(&c)
	}
	if err == nil {
		c.Policy, err = objects.Local(c.Policy)
	}
	return c, err
}

func (a *app) live(ctx context.Context, path string, f *liveServiceFlags) (err error) {
	c, err := a.liveDocument(path, f.sets)
	if err != nil {
		return err
	}
	// Until what it is joined to is closed.
	defer a.stop.hold(livetrade.EndWithin + stopGrace)()
	var ready atomic.Bool
	if !f.replay {
		n, err := server.Listen(server.Options{Health: c.Health, Log: a.log, Failed: a.unanswered("live")})
		if err != nil {
			return fmt.Errorf("health: %w", err)
		}
		defer n.Close()
		n.AnswerHealth(server.Probes{Ready: ready.Load})
		if at := n.Health(); at != "" && !a.quiet {
			a.say("health on http://%s%s and http://%s%s", at, server.LivePath, at, server.ReadyPath)
		}
	}
	source, err := liveSources.make(&c, c.Source)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	sink, err := liveSinks.make(&c, c.Sink)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sink.Close()) }()
	var orders broker.Broker
	if c.Broker.Kind != "" && !f.replay {
		if orders, err = liveBrokers.make(&c, c.Broker); err != nil {
			return err
		}
	}
	v, done, err := marketAgent(c.Policy, f.store.path())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	with, err := a.foreign(ctx, a.engine)
	if err != nil {
		return err
	}
	t, err := trader.New(ctx, v, with, c.Set...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	say := func(text string) { a.say("%s", text) }
	tellTrouble(source, sink, say)
	m, err := livetrade.NewMachine(&c, t, v.Digest, say)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	m.Open = func(beside *trader.Trader, digest string) (*trader.Trader, error) {
		return openBeside(ctx, &c, f.store.path(), with, beside, digest)
	}
	var warm []byte
	if c.Warm {
		if warm, _, err = trader.WarmState(v); err == nil && warm == nil {
			err = errors.New("warm: the agent was published without a state")
		}
		if err != nil {
			return err
		}
	}
	if f.replay {
		return a.replayLive(ctx, &c, m, warm, sink)
	}
	commands := make(chan string)
	o := livetrade.Options{
		Config: &c, Machine: m, Warm: warm, Source: source, Sink: sink, Broker: orders, Say: say, Commands: commands,
	}
	traces, flush, err := a.spans(ctx, serveTrace(c.Trace), func(err error) { a.say("warning: %v", err) })
	if err != nil {
		return err
	}
	defer flush()
	o.Traces = traces
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	alerts, endAlerts, err := a.alertLive(&c, &o)
	if err != nil {
		return err
	}
	defer endAlerts()
	if c.HTTP.Address != "" {
		end, err := a.watchLive(&c.HTTP, board.Options{Live: &o, Commands: commands, Alerts: alerts})
		if err != nil {
			return fmt.Errorf("http.address %s: %w", c.HTTP.Address, err)
		}
		defer end()
	}
	o.Ready = func() {
		ready.Store(true)
		if !a.quiet {
			a.say("%v trades with %s from decision %d on", &c, m.Policy(), m.Decisions()+1)
		}
		if c.Swap.Every > 0 {
			// One that cannot trade is reported there, before the service is asked for it.
			check := func(digest string) error {
				other, err := openBeside(ctx, &c, f.store.path(), with, t, digest)
				if err == nil {
					err = other.Close()
				}
				return err
			}
			go watchPolicy(ctx, &c, f.store.path(), m.Policy(), check, say, commands)
		}
	}
	go watchKill(ctx, c.KillFile, commands)
	context.AfterFunc(ctx, func() { ready.Store(false) })
	if err := livetrade.Run(ctx, o); err != nil {
		return err
	}
	return a.printLive(&c, m, source)
}

// watchLive lets others look at a service, until end is called.
func (a *app) watchLive(c *livetrade.HTTP, o board.Options) (end func(), err error) {
	address, err := server.Local(c.Address)
	if err != nil {
		return nil, err
	}
	if c.TokenFile == "" && c.AdminTokenFile == "" && !server.Loopback(address) {
		return nil, errors.New("everyone who reaches the address could use the kill switch: expected admin_token_file or token_file, or an address of this machine")
	}
	f := server.Files{Token: c.TokenFile, AdminToken: c.AdminTokenFile}
	n, err := server.Listen(server.Options{HTTP: address, Files: f, AllowedHosts: c.AllowedHosts, Flag: "http.allowed_hosts", Log: a.log, Failed: a.unanswered("http")})
	if err != nil {
		return nil, err
	}
	unwatch := board.Open(o, n)
	if !a.quiet {
		a.say("state on http://%s/live/state, metrics on http://%s/metrics", n.HTTP(), n.HTTP())
	}
	same := a.onHangup(n, f)
	return func() {
		same()
		unwatch()
	}, nil
}

// openBeside opens a version of the policy, from where its reference is, beside a trader.
func openBeside(ctx context.Context, c *livetrade.Config, store string, with engine.Compiler, beside *trader.Trader, digest string) (t *trader.Trader, err error) {
	if isDir(c.Policy) {
		store = filepath.Join(c.Policy, publish.StoreDir)
	} else if r, err := artifact.ParseReference(c.Policy); err == nil && r.Store != "" {
		store = r.Store
	}
	s, v, err := artifact.Find(digest, store)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return beside.Beside(ctx, v, with, c.Set...)
}

// watchPolicy looks up the reference of the policy, and sends a command when it names another
// version than before. One that cannot be looked up or cannot trade is reported once.
func watchPolicy(ctx context.Context, c *livetrade.Config, store, digest string, check func(digest string) error, say func(string), to chan<- string) {
	tick := time.NewTicker(c.Swap.Every)
	defer tick.Stop()
	told := ""
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		v, done, err := marketAgent(c.Policy, store)
		if err == nil {
			err = done()
		}
		if err == nil && v.Digest != digest {
			err = check(v.Digest)
		}
		if err != nil {
			if text := "policy: " + err.Error(); text != told && ctx.Err() == nil {
				say(text)
				told = text
			}
			continue
		}
		if told = ""; v.Digest == digest {
			continue
		}
		select {
		case to <- livetrade.CommandPolicy + " " + v.Digest:
			digest = v.Digest
		case <-ctx.Done():
			return
		}
	}
}

// killPoll is how often the kill file is looked for.
const killPoll = 200 * time.Millisecond

// watchKill sends commands when the kill file appears or goes away, and for signals.
func watchKill(ctx context.Context, path string, to chan<- string) {
	signals := make(chan os.Signal, 4)
	if list := killSignals(); len(list) > 0 {
		// Without a list all signals would be meant.
		signal.Notify(signals, list...)
		defer signal.Stop(signals)
	}
	tick := time.NewTicker(killPoll)
	defer tick.Stop()
	there := false
	for {
		text := ""
		select {
		case <-ctx.Done():
			return
		case s := <-signals:
			text = livetrade.CommandKill + " signal"
			if s != killSignals()[0] {
				text = livetrade.CommandResume
			}
		case <-tick.C:
			if path == "" {
				continue
			}
			_, err := os.Stat(path)
			switch now := err == nil; {
			case now == there:
				continue
			case now:
				text = livetrade.CommandKill + " file " + path
			default:
				text = livetrade.CommandResume
			}
			there = !there
		}
		select {
		case to <- text:
		case <-ctx.Done():
			return
		}
	}
}

func (a *app) printLive(c *livetrade.Config, m *livetrade.Machine, source livetrade.Source) error {
	x := m.Status()
	s := liveSummary{Name: c.Name, Policy: m.Policy(), Decisions: x.Decisions, Killed: x.Killed, Bars: x.Bars}
	if x, ok := source.(livetrade.Connected); ok {
		s.Reconnects = x.Reconnects()
	}
	if s.Decisions > 0 {
		s.Time, s.Value, s.Cash = m.Time().Format(time.DateTime), m.Value(), m.Cash()
	}
	if a.json {
		return a.printJSON(s)
	}
	_, err := fmt.Fprintf(a.out, "%s: %d decisions, the last at %s; value %.2f, cash %.2f; %d messages, of %d times\n", s.Name, s.Decisions, s.Time, s.Value, s.Cash, s.Bars.Messages, s.Bars.Times)
	return err
}

// replayLive compares what a journal leads to with what was published.
func (a *app) replayLive(ctx context.Context, c *livetrade.Config, m *livetrade.Machine, warm []byte, sink livetrade.Sink) error {
	p, ok := sink.(livetrade.Published)
	if !ok {
		return fmt.Errorf("--replay: a sink of kind %s cannot be read", c.Sink.Kind)
	}
	x, err := livetrade.Compare(ctx, c.State, m, warm, p)
	if err != nil {
		return err
	}
	r := liveReplay{Name: c.Name, Events: x.Events, Decisions: x.Decisions, From: x.From, Records: x.Records, Equal: true}
	if a.json {
		return a.printJSON(r)
	}
	since := ""
	if r.From > 0 {
		since = fmt.Sprintf("from the snapshot of batch %d on, ", r.From)
	}
	_, err = fmt.Fprintf(a.out, "%s: %s%d events lead to %d decisions, whose %d records are those published, byte for byte\n", r.Name, since, r.Events, r.Decisions, r.Records)
	return err
}
