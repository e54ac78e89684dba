package samples

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/onnxrl/onnxrl/agents/offline"
	"github.com/onnxrl/onnxrl/agents/scml"
	"github.com/onnxrl/onnxrl/agents/scml/seat"
	"github.com/onnxrl/onnxrl/envs/scml/negotiation"
	"github.com/onnxrl/onnxrl/envs/scml/record"
	"github.com/onnxrl/onnxrl/envs/scml/world"
)

// follower plays a world of a log again.
type follower struct {
	o      Options
	number int
	dir    string
	file   *record.World
	w      *world.World
	ids    []string
	talks  map[pair]*talk
	aims   []aims
	agents []*scml.Agent
	// wanted says whose samples are kept.
	wanted []bool
	goals  []scml.Goal
	before []float64

	macro []*offline.Episode
	// open are the sides of today's negotiations, micro and residuals those that have ended.
	open             map[sideOf]side
	micro, residuals []*offline.Episode
	world            World

	static, temporal, role, market []float32
	thread, history, goal          []float32
	target, situation, limits      []float32
	now                            scml.Day
	asked                          []int
}

// sideOf is an agent's side of a day's negotiation.
type sideOf struct{ pair, agent int }

// side has the samples of one.
type side struct{ micro, residual *offline.Episode }

// follow plays the world of a folder.
func follow(dir string, number int, o Options) (*follower, error) {
	file, err := record.ReadLogs(dir)
	if lacks := complete(dir); lacks != nil && !errors.Is(err, record.ErrPerishable) {
		return nil, lacks
	}
	if err != nil {
		return nil, err
	}
	c, err := file.Config()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	if len(file.Played) == 0 {
		return nil, fmt.Errorf("%s: stats.csv has no day", dir)
	}
	if len(file.Played) > c.Days {
		return nil, fmt.Errorf("%s: stats.csv has %d days, and n_steps is %d", dir, len(file.Played), c.Days)
	}
	c.Rules.PassLimit = 0
	index := indices(c)
	f := &follower{o: o, number: number, dir: dir, file: file, open: map[sideOf]side{}, ids: file.IDs(), world: World{Days: len(file.Played), Levels: c.Levels(), Agents: len(c.Factories)}}
	if f.talks, err = readTalks(dir, index); err != nil {
		return nil, err
	}
	sync := make([]bool, len(c.Factories))
	for i := range sync {
		sync[i] = true
	}
	if f.w, err = world.New(c, sync); err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	f.w.Follow()
	f.aims = infer(file, &c.Rules, index, o.Goal == scml.WholeGoal)
	n := len(c.Factories)
	f.agents, f.macro, f.goals, f.before = make([]*scml.Agent, n), make([]*offline.Episode, n), make([]scml.Goal, n), make([]float64, n)
	for i := range n {
		f.agents[i] = scml.NewAgent(scml.Layers{})
		f.wanted = append(f.wanted, o.wants(c.Factories[i].Type))
		f.macro[i] = episode(len(file.Played), o.Goal, scml.StaticFeatures, (o.Horizon+1)*scml.TemporalFeatures, scml.RoleFeatures, seat.Market)
	}
	f.static, f.temporal, f.role, f.market = make([]float32, scml.StaticFeatures), make([]float32, (o.Horizon+1)*scml.TemporalFeatures), make([]float32, scml.RoleFeatures), make([]float32, seat.Market)
	f.thread, f.history, f.goal = make([]float32, scml.ThreadFeatures), make([]float32, scml.Moves*scml.MoveFeatures), make([]float32, o.Goal)
	f.target, f.situation, f.limits = make([]float32, scml.FullGoal), make([]float32, seat.Situation), make([]float32, 2*scml.Residual)
	return f, f.play()
}

// episode is an empty one with room for so many steps, of fields and actions of so many float32.
func episode(steps, action int, fields ...int) *offline.Episode {
	e := &offline.Episode{Rows: make([][]int64, len(fields)), Action: make([]byte, 0, 4*action*steps), Reward: make([]float64, 0, steps), Discount: make([]float64, 0, steps), LogProb: make([]float64, 0, steps)}
	for _, n := range fields {
		e.Obs = append(e.Obs, make([]byte, 0, 4*n*(steps+1)))
	}
	return e
}

// play answers until the last day of the log.
func (f *follower) play() error {
	for {
		q := f.w.Next()
		switch q.Event {
		case world.Starts:
			f.agents[q.Agent].Starts(f.w.View(q.Agent))
		case world.DayBegins:
			f.morning(q.Agent)
		case world.AskFirst:
			if err := f.first(q); err != nil {
				return err
			}
		case world.AskCounters:
			f.counters(q)
		case world.Agreed:
			f.agents[q.Agent].Agreed(q.Contract)
		case world.Failed:
			f.agents[q.Agent].Failed(q.Negotiation)
		case world.Settled:
			if err := f.settled(); err != nil {
				return err
			}
			if f.w.Today()+1 == len(f.file.Played) {
				return f.end()
			}
		case world.Over:
			return f.end()
		}
	}
}

// morning takes the observation of a day, and its goal.
func (f *follower) morning(i int) {
	a := f.agents[i]
	d := a.Morning()
	f.goals[i] = f.aims[i].goal(f.w.Today(), d, f.o.Goal == scml.WholeGoal)
	a.Set(f.goals[i])
	f.show(i)
	if e := f.macro[i]; f.wanted[i] {
		f.goals[i].Encode(f.goal, d)
		e.Action = appendFloats(e.Action, f.goal)
		e.Discount, e.LogProb = append(e.Discount, 1), append(e.LogProb, math.NaN())
	}
	f.before[i] = f.w.Balance(i)
}

// show appends a factory's observation.
func (f *follower) show(i int) {
	if !f.wanted[i] {
		return
	}
	f.agents[i].Today().Write(f.static, f.temporal, f.role)
	seat.Levels(f.w, f.market)
	e := f.macro[i]
	for k, x := range [][]float32{f.static, f.temporal, f.role, f.market} {
		e.Obs[k] = appendFloats(e.Obs[k], x)
	}
}

// talk returns the log of a slot's negotiation, and the side of the agent in it; nil without.
func (f *follower) talk(agent, slot int) (*talk, *negotiation.Mechanism, int) {
	m := f.w.View(agent).Negotiation(slot)
	if m == nil {
		return nil, nil, 0
	}
	side := 0
	if m.Agents[1] == agent {
		side = 1
	}
	return f.talks[pair{m.Day, m.Agents[0], m.Agents[1]}], m, side
}

// first makes first proposals. Partners are asked for theirs before they hear anything; those are
// overwritten.
func (f *follower) first(q *world.Question) error {
	caller := false
	for k := range q.Replies {
		t, m, side := f.talk(q.Agent, k)
		if m == nil || side != 0 || m.Opened || m.Status != negotiation.Running {
			continue
		}
		caller = true
		if t == nil {
			continue
		}
		if m.Box != t.box {
			return fmt.Errorf("%s: negotiations.csv: negotiation %d: the issues are %v, computed %v: the log is of another version of the league, or of other rules", f.dir, t.index, t.box, m.Box)
		}
		if len(t.offers) > 0 {
			q.Replies[k] = negotiation.Propose(t.offers[0])
		}
	}
	if !caller || len(f.asked) > 0 && f.asked[q.Agent] == f.w.Today()+1 {
		return nil
	}
	if len(f.asked) == 0 {
		f.asked = make([]int, len(f.agents))
	}
	f.asked[q.Agent] = f.w.Today() + 1
	f.decide(q.Agent, nil, q.Replies)
	return nil
}

// counters answers what was heard.
func (f *follower) counters(q *world.Question) {
	for _, k := range q.Heard {
		t, m, side := f.talk(q.Agent, k)
		switch next := 2*m.Round + side; {
		case t == nil:
			q.Replies[k] = negotiation.Answer(negotiation.End)
		case next < len(t.offers):
			q.Replies[k] = negotiation.Propose(t.offers[next])
		case t.agreed:
			q.Replies[k] = negotiation.Answer(negotiation.Accept)
		default:
			q.Replies[k] = negotiation.Answer(negotiation.End)
		}
	}
	f.decide(q.Agent, q.Heard, q.Replies)
}

// decide takes the samples of a decision.
func (f *follower) decide(agent int, heard []int, replies []negotiation.Reply) {
	a := f.agents[agent]
	threads := a.Prepare(heard, heard == nil, len(replies))
	if f.wanted[agent] {
		f.goals[agent].Encode(f.goal, a.Today())
		seat.Situate(a, &f.now, f.w.View(agent), len(threads), f.situation)
		seat.Levels(f.w, f.market)
		for i := range threads {
			t, m, _ := f.talk(agent, threads[i].Slot)
			r := &replies[threads[i].Slot]
			if t == nil || !r.Offered && !t.agreed && !t.decided {
				continue // It was left over: nobody has decided that it ends.
			}
			f.sample(agent, t, m, &threads[i], r)
		}
	}
	a.Follow(replies)
}

// sample appends a decision about a negotiation.
func (f *follower) sample(agent int, t *talk, m *negotiation.Mechanism, x *scml.Thread, r *negotiation.Reply) {
	key := sideOf{t.index, agent}
	both, begun := f.open[key]
	if !begun {
		const history = scml.Moves * scml.MoveFeatures
		n := len(t.offers)/2 + 1
		both = side{
			episode(n, scml.Direct, scml.ThreadFeatures, history, f.o.Goal, scml.Direct, 2),
			episode(n, scml.Residual, scml.ThreadFeatures, history, scml.FullGoal, seat.Situation, seat.Market, 2*scml.Residual),
		}
		f.open[key] = both
	}
	e := both.micro
	x.Write(f.thread, f.history)
	base := x.Base
	if !base.Given {
		base = negotiation.Answer(negotiation.End)
	}
	e.Obs[0], e.Obs[1], e.Obs[2] = appendFloats(e.Obs[0], f.thread), appendFloats(e.Obs[1], f.history), appendFloats(e.Obs[2], f.goal)
	e.Obs[3] = appendFloats(e.Obs[3], answer(&base, x, &m.Box))
	e.Obs[4] = appendFloats(e.Obs[4], []float32{float32(f.number), float32(t.index)})
	e.Action = appendFloats(e.Action, answer(r, x, &m.Box))
	unsafe := 0.0
	o := r.Offer
	if r.Response == negotiation.Accept {
		o = x.Offer
	}
	if r.Offered || r.Response == negotiation.Accept {
		unsafe = float64(o.Quantity-f.agents[agent].Max(x.Slot, scml.Side(f.w.View(agent), x.Slot), o)) / float64(x.Lines)
	}
	e.Cost, e.Reward = append(e.Cost, unsafe), append(e.Reward, 0)
	e.Discount, e.LogProb = append(e.Discount, 1), append(e.LogProb, math.NaN())
	f.world.Decisions++
	f.residual(both.residual, agent, x, r)
}

// residual appends the same decision as the executor learns it.
func (f *follower) residual(e *offline.Episode, agent int, x *scml.Thread, r *negotiation.Reply) {
	scml.WriteGoal(x.Goal, x.Lines, f.target)
	seat.WriteLimits(f.agents[agent], x, f.limits)
	for k, list := range [][]float32{f.thread, f.history, f.target, f.situation, f.market, f.limits} {
		e.Obs[k] = appendFloats(e.Obs[k], list)
	}
	y := x.ResidualOf(r)
	e.Action, e.Reward = appendFloats(e.Action, y[:]), append(e.Reward, 0)
	e.Discount, e.LogProb = append(e.Discount, 1), append(e.LogProb, math.NaN())
}

// answer is a reply as direct mode has it: [q, p, accept, end, t].
func answer(r *negotiation.Reply, x *scml.Thread, box *negotiation.Box) []float32 {
	out := make([]float32, scml.Direct)
	o := r.Offer
	if accepts := r.Response == negotiation.Accept; accepts {
		o = x.Offer
	}
	sign := func(b bool) float32 {
		if b {
			return 1
		}
		return -1
	}
	out[2] = sign(r.Response == negotiation.Accept)
	out[3] = sign(r.Response == negotiation.End || r.Response == negotiation.Reject && !r.Offered)
	if r.Offered || r.Response == negotiation.Accept {
		out[0] = float32(min(float64(o.Quantity)/(scml.MostUnits*float64(x.Lines)), 1))
		out[1] = float32(scml.PriceInRange(float64(o.Price), box.Low.Price, box.High.Price))
		out[4] = float32(min(float64(o.Time-x.Today)/5-1, 1))
	}
	return out
}

// settled ends a day: the numbers must be those of the log.
func (f *follower) settled() error {
	day := f.w.Today()
	d := &f.file.Played[day]
	if signed := len(f.w.SignedToday()); signed != len(d.Signed) {
		return fmt.Errorf("%s: day %d: contracts.csv has %d contracts that were signed, and negotiations.csv %d agreements", f.dir, day, len(d.Signed), signed)
	}
	differs := func(of, name string, recorded, computed float64) error {
		if off := math.Abs(recorded-computed) / max(1, math.Abs(recorded)); !(off <= tolerance) {
			return fmt.Errorf("%s: stats.csv: day %d, %s_%s is %v, computed %v: the log is of another version of the league, or of other rules", f.dir, day, name, of, recorded, computed)
		}
		return nil
	}
	for p, x := range d.End.Trading {
		if err := differs(fmt.Sprint(p), "trading_price", x, f.w.TradingPrice(p)); err != nil {
			return err
		}
	}
	for i, id := range f.ids {
		last := d.End.Agents[id]
		if err := differs(id, "balance", last.Balance, f.w.Balance(i)); err != nil {
			return err
		}
		if err := differs(id, "inventory_input", float64(last.Stock), float64(f.w.Stock(i))); err != nil {
			return err
		}
		if e := f.macro[i]; f.wanted[i] {
			e.Reward = append(e.Reward, seat.DefaultGoals().Scale*(f.w.Balance(i)-f.before[i])/f.w.Config().Factories[i].Balance)
		}
	}
	f.world.Negotiations += f.w.Statistics().Negotiations
	// Those that were left over have no decision any more.
	f.close()
	return nil
}

// close ends the sides of today's negotiations, in order.
func (f *follower) close() {
	var keys []sideOf
	for key := range f.open {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b sideOf) int { return cmp.Or(a.pair-b.pair, a.agent-b.agent) })
	for _, key := range keys {
		both := f.open[key]
		for _, e := range []*offline.Episode{both.micro, both.residual} {
			repeat(e)
			e.Terminated, e.Discount[e.Len()-1] = true, 0
		}
		f.micro, f.residuals = append(f.micro, both.micro), append(f.residuals, both.residual)
	}
	clear(f.open)
}

// repeat makes the last observation the final one, from which nothing is learnt.
func repeat(e *offline.Episode) {
	for k, b := range e.Obs {
		size := len(b) / e.Len()
		e.Obs[k] = append(b, b[len(b)-size:]...)
	}
}

// end closes the episodes of factories. One that stops before the world's last day was cut off.
func (f *follower) end() error {
	for i, e := range f.macro {
		if !f.wanted[i] {
			continue
		}
		repeat(e)
		if f.w.Today()+1 < f.w.Config().Days {
			e.Truncated = true
		} else {
			e.Terminated, e.Discount[e.Len()-1] = true, 0
		}
	}
	return nil
}

// tolerance is how far a number of the log may be from what is computed, relative to its size.
const tolerance = 1e-9

func appendFloats(to []byte, list []float32) []byte {
	for _, x := range list {
		to = binary.LittleEndian.AppendUint32(to, math.Float32bits(x))
	}
	return to
}
