package logs

import (
	"bufio"
	"crypto/sha1"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/onnxrl/onnxrl/envs/scml/negotiation"
	"github.com/onnxrl/onnxrl/envs/scml/world"
	"github.com/onnxrl/onnxrl/runtime/atomicfile"
)

// trackerDir has what the tracker of scml_analyzer writes of agents, and trackerSummary is the file
// in it about all of them.
const (
	trackerDir     = "tracker_logs"
	trackerSummary = "tracker_summary.json"
)

// tracker writes the log that scml_analyzer's tracker (github.com/Ethanlita/LitaAgent, auto_tracker
// and tracker_mixin as of 2026) writes of an agent: the same file name, keys, categories, events and
// data. What differs: it tells of agents that decide on each negotiation by itself, too. A failure
// names the partner, where the original names the caller, and success and failure their negotiation;
// first proposals that are never made, to partners who begin, are left out; timestamps count entries,
// a microsecond each, since there is no clock.
type tracker struct {
	file *os.File
	out  *bufio.Writer
	head trackerHead
	day  int
	n    int
	// stats and series are the original's.
	stats  map[string]int
	series map[string][][2]float64
	err    error
}

// trackerHead is what each entry begins with.
type trackerHead struct {
	Agent string `json:"agent_id"`
	Type  string `json:"agent_type"`
	World string `json:"world_id"`
}

type trackerEntry struct {
	Timestamp string `json:"timestamp"`
	trackerHead
	Day      int            `json:"day"`
	Category string         `json:"category"`
	Event    string         `json:"event"`
	Data     map[string]any `json:"data"`
}

// trackerAgent is an agent of the summary.
type trackerAgent struct {
	Type  string         `json:"type"`
	Stats map[string]int `json:"stats"`
}

// epoch is where timestamps begin.
var epoch = time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC)

// timestamp is that of the n-th entry.
func timestamp(n int) string {
	return epoch.Add(time.Duration(n) * time.Microsecond).Format("2006-01-02T15:04:05.000000")
}

// trackerName is the name of the file of an agent: it has the world's name and a digest of it.
func trackerName(agent, world string) string {
	safe := strings.NewReplacer("/", "_", `\`, "_").Replace(world)
	return fmt.Sprintf("agent_%s_world_%s_%s.json", strings.NewReplacer("@", "_at_", "/", "_").Replace(agent), safe[:min(40, len(safe))], digest(world)[:12])
}

func digest(text string) string { return fmt.Sprintf("%x", sha1.Sum([]byte(text))) }

// track begins the logs of the agents that are scored.
func (f *Folder) track() error {
	f.trackers = make([]*tracker, len(f.ids))
	if err := os.Mkdir(filepath.Join(f.partial, trackerDir), 0o755); err != nil {
		return err
	}
	c := f.w.Config()
	for _, i := range f.scored() {
		k := &tracker{
			head:  trackerHead{f.ids[i] + "#W" + digest(f.o.World)[:8], shortType(f.types[i]), f.o.World},
			stats: map[string]int{"negotiations_started": 0, "negotiations_success": 0, "negotiations_failed": 0, "contracts_signed": 0, "contracts_breached": 0, "offers_made": 0, "offers_accepted": 0, "offers_rejected": 0, "production_scheduled": 0, "production_executed": 0},
			// Those of an agent that was told of no day are empty lists.
			series: map[string][][2]float64{},
		}
		var err error
		if k.file, err = os.Create(filepath.Join(f.partial, trackerDir, trackerName(k.head.Agent, f.o.World))); err != nil {
			return err
		}
		f.trackers[i] = k
		k.out = bufio.NewWriterSize(k.file, 1<<16)
		head, err := json.Marshal(k.head)
		if err != nil {
			return err
		}
		k.write(strings.TrimSuffix(string(head), "}") + `, "entries": [`)
		_, module, _ := strings.Cut(f.types[i], ":")
		k.log("custom", "agent_initialized", map[string]any{
			"n_steps": c.Days, "n_lines": c.Lines, "level": c.Factories[i].Level, "agent_display_name": f.ids[i], "agent_type_raw": shortType(module) + "Tracked", "agent_type_raw_full": module + "Tracked",
			"agent_type_raw_qualname": shortType(module) + "Tracked", "agent_type_base": shortType(module), "agent_type_base_full": module, "agent_type_base_qualname": shortType(module),
		})
	}
	return nil
}

// tracked is the tracker of an agent, nil where it has none.
func (f *Folder) tracked(agent int) *tracker {
	if f.trackers == nil || f.trackers[agent] == nil {
		return nil
	}
	f.trackers[agent].day = f.w.Today()
	return f.trackers[agent]
}

func (k *tracker) write(text string) {
	if _, err := k.out.WriteString(text); k.err == nil {
		k.err = err
	}
}

// log adds an entry.
func (k *tracker) log(category, event string, data map[string]any) {
	k.n++
	b, err := json.Marshal(trackerEntry{timestamp(k.n), k.head, k.day, category, event, data})
	if err != nil && k.err == nil {
		k.err = err
	}
	if k.n > 1 {
		k.write(",")
	}
	k.write("\n" + string(b))
}

// close ends the file.
func (k *tracker) close() error {
	rest, err := json.Marshal(map[string]any{"stats": k.stats, "time_series": k.series})
	if k.err == nil {
		k.err = err
	}
	k.write("\n], " + strings.TrimPrefix(string(rest), "{") + "\n")
	if err := k.out.Flush(); k.err == nil {
		k.err = err
	}
	if err := k.file.Close(); k.err == nil {
		k.err = err
	}
	return k.err
}

// about says of a negotiation what each entry of a side has.
func (f *Folder) about(m *negotiation.Mechanism, t *talk, side int, more map[string]any) map[string]any {
	buyer, seller := f.sides(m)
	partner, role := f.ids[m.Agents[1-side]], "buyer"
	if m.Agents[side] == seller {
		role = "seller"
	}
	for key, x := range map[string]any{"partner": partner, "role": role, "buyer": f.ids[buyer], "seller": f.ids[seller], "mechanism_id": t.id, "negotiator_id": partner} {
		more[key] = x
	}
	return more
}

func offerData(o negotiation.Offer, round int) map[string]any {
	data := map[string]any{"quantity": o.Quantity, "delivery_day": o.Time, "unit_price": o.Price}
	if round >= 0 {
		data["round"] = round
	}
	return data
}

// trackBegun tells a side that a negotiation has begun, before the first entry of its own.
func (f *Folder) trackBegun(k *tracker, m *negotiation.Mechanism, t *talk, side int) {
	if t.begun[side] {
		return
	}
	t.begun[side] = true
	k.stats["negotiations_started"]++
	k.log("negotiation", "started", f.about(m, t, side, map[string]any{"issues": string(appendIssues(nil, &m.Box)), "min_price": m.Box.Low.Price, "max_price": m.Box.High.Price}))
}

// act tells a side what it does with what it has heard; the offer is what it accepts or makes.
func (f *Folder) act(k *tracker, m *negotiation.Mechanism, t *talk, side, round int, op, response, reason string, offer *negotiation.Offer) {
	partner := f.ids[m.Agents[1-side]]
	role := f.about(m, t, side, map[string]any{})["role"]
	data := map[string]any{"sim_step": f.w.Today(), "negotiator_id": partner, "mechanism_id": t.id, "partner": partner, "role": role, "round": round, "action_op": op, "response_type": response, "offer": nil, "reason": reason}
	if offer != nil {
		data["offer"] = offerData(*offer, -1)
	}
	k.log("custom", "aop_action", data)
}

// trackHeard tells a side what it has been offered.
func (f *Folder) trackHeard(k *tracker, m *negotiation.Mechanism, t *talk, side, round int, o negotiation.Offer) {
	f.trackBegun(k, m, t, side)
	k.log("negotiation", "offer_received", f.about(m, t, side, map[string]any{"offer": offerData(o, round)}))
}

// trackOffered tells the side whose offer is on the table; before are those made before it.
func (f *Folder) trackOffered(m *negotiation.Mechanism, t *talk, before []offered) {
	side := int(m.Turn)
	k := f.tracked(m.Agents[side])
	if k == nil {
		return
	}
	f.trackBegun(k, m, t, side)
	reason, why := "first_proposal", "first_proposal"
	if n := len(before); n > 0 {
		f.trackHeard(k, m, t, side, m.Round, before[n-1].Offer)
		reason, why = "counter_offer", "counter_all"
	}
	k.stats["offers_made"]++
	k.log("negotiation", "offer_made", f.about(m, t, side, map[string]any{"offer": offerData(m.Current, m.Round), "reason": reason}))
	f.act(k, m, t, side, m.Round, "REJECT", "REJECT_OFFER", why, &m.Current)
}

// trackEnded tells both sides how a negotiation has ended, and first the one that ended it what it
// was offered.
func (f *Folder) trackEnded(m *negotiation.Mechanism, t *talk) {
	if f.trackers == nil {
		return
	}
	if n := len(t.offers); n > 0 && !m.Orphan && m.Status != negotiation.TimedOut {
		last := t.offers[n-1]
		side := int(1 - last.side)
		if k := f.tracked(m.Agents[side]); k != nil && (m.Status == negotiation.Agreed || int(m.Turn) == side) {
			// The round that has ended it counts already.
			round := m.Round - 1
			f.trackHeard(k, m, t, side, round, last.Offer)
			event, stat, op, response, reason := "reject", "offers_rejected", "END", "END_NEGOTIATION", "end_negotiation"
			var offer *negotiation.Offer
			if m.Status == negotiation.Agreed {
				event, stat, op, response, reason, offer = "accept", "offers_accepted", "ACCEPT", "ACCEPT_OFFER", "accepted_in_counter_all", &last.Offer
			}
			k.stats[stat]++
			k.log("negotiation", event, f.about(m, t, side, map[string]any{"offer": offerData(last.Offer, -1), "reason": reason}))
			f.act(k, m, t, side, round, op, response, "counter_all", offer)
		}
	}
	for side, agent := range m.Agents {
		k := f.tracked(agent)
		switch {
		case k == nil:
		case m.Status == negotiation.Agreed:
			o := m.Current
			buyer, seller := f.sides(m)
			k.stats["contracts_signed"]++
			signed := f.about(m, t, side, map[string]any{"contract_id": f.contractID(len(f.w.Contracts())), "quantity": o.Quantity, "price": o.Price, "delivery_day": o.Time})
			delete(signed, "mechanism_id")
			delete(signed, "negotiator_id")
			k.log("contract", "signed", signed)
			k.stats["negotiations_success"]++
			k.log("negotiation", "success", f.about(m, t, side, map[string]any{"agreement": map[string]any{"quantity": o.Quantity, "price": o.Price, "time": o.Time, "buyer": f.ids[buyer], "seller": f.ids[seller]}}))
		default:
			k.stats["negotiations_failed"]++
			k.log("negotiation", "failure", f.about(m, t, side, map[string]any{"reason": "negotiation_ended_without_agreement"}))
		}
	}
}

// Closing implements world.Closer: what is due today is delivered, and the day's status is as it was
// negotiated, before anything is made or paid.
func (f *Folder) Closing() {
	if f.trackers == nil {
		return
	}
	executed := make([][2]int, len(f.ids))
	deliver := func(id string, seller, buyer, quantity, price int) {
		for _, agent := range []int{seller, buyer} {
			k := f.tracked(agent)
			partner, role, side := f.ids[buyer], "seller", 1
			if agent == buyer {
				partner, role, side = f.ids[seller], "buyer", 0
			}
			executed[agent][side] += quantity
			if k != nil {
				k.log("contract", "executed", map[string]any{"contract_id": id, "quantity": quantity, "partner": partner, "price": price, "delivery_day": f.w.Today(), "buyer": f.ids[buyer], "seller": f.ids[seller], "role": role})
			}
		}
	}
	for due := range f.w.DueToday() {
		if !due.Dropped {
			deliver(f.contractID(f.firsts[due.Signed]+due.Rank), due.Seller, due.Buyer, due.Quantity, due.Price)
		}
	}
	// Those with the outside have the rows behind the day's own.
	row, system := len(f.w.Contracts()), len(f.ids)-2
	for _, e := range f.w.Config().Exogenous {
		if e.Day > f.w.Today() {
			break
		}
		if e.Day == f.w.Today() {
			seller, buyer := system, e.Factory
			if e.Demand {
				seller, buyer = e.Factory, system+1
			}
			deliver(f.name("contract", row), seller, buyer, e.Quantity, e.Price)
		}
		row++
	}
	for i := range f.ids {
		if k := f.tracked(i); k != nil {
			f.status(k, f.w.View(i), executed[i])
		}
	}
}

// status writes the state of a factory in the evening; executed are what was bought and sold.
func (f *Folder) status(k *tracker, v *world.View, executed [2]int) {
	c, i, today := f.w.Config(), v.Index(), v.Today()
	supply, demand := v.Supply(), v.Demand()
	k.log("inventory", "state", map[string]any{"raw_material": v.Stock(), "product": 0, "balance": v.Balance()})
	for name, x := range map[string]float64{"raw_material": float64(v.Stock()), "product": 0, "balance": v.Balance()} {
		k.series[name] = append(k.series[name], [2]float64{float64(today), x})
	}
	// The original looks 40 days ahead, and one beyond the end of the world.
	days := min(c.Days-today+1, 41)
	in, out, pay, receive := make([]int, days), make([]int, days), make([]float64, days), make([]float64, days)
	for d := range min(days, c.Days-today) {
		in[d], out[d] = v.SuppliesAt(today+d), v.SalesAt(today+d)
		for _, list := range []struct {
			of []int
			to []float64
		}{{v.Suppliers(), pay}, {v.Consumers(), receive}} {
			for _, partner := range list.of {
				list.to[d] += v.With(partner, today+d).Money
			}
		}
	}
	prices := make([]float64, len(c.Catalog))
	for p := range prices {
		prices[p] = f.w.PriceInForce(p)
	}
	own := &c.Factories[i]
	k.log("custom", "daily_status", map[string]any{
		"score": f.w.Score(i), "balance": v.Balance(), "initial_balance": own.Balance, "exo_input_qty": supply.Quantity, "exo_input_price": supply.Money, "exo_output_qty": demand.Quantity, "exo_output_price": demand.Money,
		"needed_supplies": max(0, v.NeededSupplies()), "needed_sales": max(0, v.NeededSales()), "needed_supplies_raw": v.NeededSupplies(), "needed_sales_raw": v.NeededSales(), "total_supplies": v.SuppliesAt(today), "total_sales": v.SalesAt(today),
		"executed_supplies": executed[0], "executed_sales": executed[1], "disposal_cost": 0, "shortfall_penalty": own.Shortfall[today], "storage_cost": own.Storage[today], "n_lines": c.Lines, "n_steps": c.Days, "current_step": today,
		"spot_price_in": prices[own.Level], "spot_price_out": prices[own.Level+1], "trading_prices": prices, "inventory_input": v.Stock(), "inventory_output": 0, "my_input_product": own.Level, "my_output_product": own.Level + 1, "n_products": len(prices),
		"commitments": map[string]any{"Q_in": in, "Q_out": out, "Payables": pay, "Receivables": receive}, "offers_snapshot": f.open(v),
	})
}

// open lists what is on the table in an agent's negotiations that have not ended: day of delivery,
// quantity and price.
func (f *Folder) open(v *world.View) map[string][][3]int {
	lists := map[string][][3]int{"buy": {}, "sell": {}}
	for slot := range v.Slots() {
		m := v.Negotiation(slot)
		if m == nil || m.Status != negotiation.Running || !m.Opened {
			continue
		}
		side := "sell"
		if v.Buying(slot) {
			side = "buy"
		}
		lists[side] = append(lists[side], [3]int{m.Current.Time, m.Current.Quantity, m.Current.Price})
	}
	return lists
}

// closeTrackers ends the logs, and gives those of a tournament to its folder.
func (f *Folder) closeTrackers(keep bool) error {
	agents := map[string]trackerAgent{}
	for _, k := range f.trackers {
		if k == nil {
			continue
		}
		if err := k.close(); err != nil && keep {
			return fmt.Errorf("%s: %w", k.file.Name(), err)
		}
		agents[k.head.Agent] = trackerAgent{k.head.Type, k.stats}
	}
	if !keep || f.trackers == nil {
		return nil
	}
	f.trackers = nil
	from := filepath.Join(f.partial, trackerDir)
	if f.o.Trackers == "" {
		return writeTrackerSummary(from, f.o.World, agents)
	}
	list, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, e := range list {
		if err := os.Rename(filepath.Join(from, e.Name()), filepath.Join(f.o.Trackers, e.Name())); err != nil {
			return err
		}
	}
	return os.Remove(from)
}

// writeTrackerSummary writes tracker_summary.json.
func writeTrackerSummary(dir, world string, agents map[string]trackerAgent) error {
	b, err := json.MarshalIndent(map[string]any{"world_id": world, "agents": agents, "timestamp": timestamp(0)}, "", "  ")
	if err != nil {
		return err
	}
	return atomicfile.WriteBytes(filepath.Join(dir, trackerSummary), b)
}

// summariseTrackers writes the summary of a tournament's logs, which worlds have written one after
// another.
func (t *Tournament) summariseTrackers() error {
	if !t.more.Tracked {
		return nil
	}
	dir := filepath.Join(t.dir, trackerDir)
	list, err := filepath.Glob(filepath.Join(dir, "agent_*.json"))
	if err != nil {
		return err
	}
	agents, first := map[string]trackerAgent{}, ""
	for _, path := range list {
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var k struct {
			trackerHead
			Stats map[string]int `json:"stats"`
		}
		if err := json.Unmarshal(text, &k); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if agents[k.Agent] = (trackerAgent{k.Type, k.Stats}); first == "" {
			first = k.World
		}
	}
	return writeTrackerSummary(dir, first, agents)
}
