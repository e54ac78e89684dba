package record

import (
	"fmt"
	"math"
	"reflect"

	"github.com/onnxrl/onnxrl/envs/scml/world"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// Tolerance is how far a number may be from what it is computed to be, relative to the larger of
// its size and 1; money is relative to what its owner began with, too, as a balance near zero is
// the small difference of large sums.
const Tolerance = 2e-12

// Difference is the first number of a file that is not what follows from the rest.
type Difference struct {
	Day int `json:"day"`
	// Of is the agent or product, Number the key; both are as in the file.
	Of       string `json:"of"`
	Number   string `json:"number"`
	Recorded string `json:"recorded"`
	Computed string `json:"computed"`
}

// Error says where it is.
func (d *Difference) Error() string {
	return fmt.Sprintf("day %d, %s: %s is %s, computed %s", d.Day, d.Of, d.Number, d.Recorded, d.Computed)
}

// Checked counts what a replay compared.
type Checked struct {
	Days      int `json:"days"`
	Contracts int `json:"contracts"`
	Numbers   int `json:"numbers"`
	// Bankrupt agents and Dropped contracts.
	Bankrupt int `json:"bankrupt"`
	Dropped  int `json:"dropped"`
	// Worst is the largest error that was tolerated, relative as Tolerance is.
	Worst float64 `json:"worst_error"`
}

// replay is one in the making.
type replay struct {
	file    *World
	w       *world.World
	ids     []string
	index   map[string]int
	checked Checked
	day     int
	diff    *Difference
}

// Replay computes a run again from its configuration and from what was signed, and compares every
// number of the end of each day, the boxes of all products, what was delivered and dropped, and the
// scores. The error is a [Difference] where one differs.
func Replay(file *World) (Checked, error) {
	c, err := file.Config()
	if err != nil {
		return Checked{}, err
	}
	w, err := world.New(c, make([]bool, len(c.Factories)))
	if err != nil {
		return Checked{}, err
	}
	r := &replay{file: file, w: w, ids: file.IDs(), index: map[string]int{}}
	for i, id := range r.ids {
		r.index[id] = i
	}
	if len(file.Played) > file.Days {
		return Checked{}, fmt.Errorf("%d days, but n_steps is %d", len(file.Played), file.Days)
	}
	ids := map[[2]int]string{} // by day and rank
	for day := range file.Played {
		if err := r.play(&file.Played[day], day, ids); err != nil {
			return r.checked, err
		}
	}
	for i, id := range r.ids {
		if w.Bankrupt(i) {
			r.checked.Bankrupt++
		}
		if score, ok := file.Scores[id]; ok && len(file.Played) > 0 {
			r.number(id, "final_scores", score, w.Score(i))
		}
	}
	return r.checked, r.err()
}

func (r *replay) err() error {
	if r.diff == nil {
		return nil
	}
	return r.diff
}

// play plays a day on which nobody negotiates, and signs what was signed.
func (r *replay) play(d *Day, day int, ids map[[2]int]string) error {
	if r.day = day; d.Day != day {
		return fmt.Errorf("days[%d].day is %d, expected %d", day, d.Day, day)
	}
	signed := false
	for q := r.w.Next(); q.Event != world.Settled; q = r.w.Next() {
		if q.Event != world.DayEnds || signed {
			continue
		}
		signed = true
		for k, c := range d.Signed {
			seller, ok := r.index[c.Seller]
			buyer, ok2 := r.index[c.Buyer]
			if !ok || !ok2 {
				return fmt.Errorf("days[%d].signed_today[%d]: seller %q or buyer %q is no agent of this world", day, k, c.Seller, c.Buyer)
			}
			if err := r.w.Sign(world.Contract{Seller: seller, Buyer: buyer, Quantity: c.Quantity, Time: c.Time, Price: c.Price, Rounds: c.Rounds}); err != nil {
				return fmt.Errorf("days[%d].signed_today[%d]: %w", day, k, err)
			}
			ids[[2]int{day, k}] = c.ID
		}
		r.checked.Contracts += len(d.Signed)
	}
	r.checked.Days++
	r.prices(d)
	r.due(d, ids)
	r.ends(d)
	r.published(d)
	return r.err()
}

// prices compares what was in force.
func (r *replay) prices(d *Day) {
	for p := range r.file.Catalog {
		of := fmt.Sprintf("product %d", p)
		if len(d.InForce) > 0 {
			r.number(of, "trading_price_in_force", at(d.InForce, p), r.w.PriceInForce(p))
		}
		if d.Issues == nil {
			continue
		}
		b := r.w.Box(p)
		want := [3][2]int{{b.Low.Quantity, b.High.Quantity}, {b.Low.Time, b.High.Time}, {b.Low.Price, b.High.Price}}
		r.equal(of, "issues_q_t_p_by_product", at(d.Issues, p), want)
	}
}

// due compares which contracts were delivered; exogenous ones, whose ids nothing else names, are
// left out.
func (r *replay) due(d *Day, ids map[[2]int]string) {
	executed, dropped := map[string]bool{}, map[string]bool{}
	for _, id := range d.Executed {
		executed[id] = true
	}
	for _, id := range d.Dropped {
		dropped[id] = true
	}
	for due := range r.w.DueToday() {
		id := ids[[2]int{due.Signed, due.Rank}]
		if due.Dropped {
			r.checked.Dropped++
		}
		if d.Executed != nil {
			r.equal("contract "+id, "dropped", dropped[id], due.Dropped)
			r.equal("contract "+id, "executed", executed[id], !due.Dropped)
		}
	}
}

// ends compares the numbers after the day.
func (r *replay) ends(d *Day) {
	e := end(r.w, r.ids)
	for p := range r.file.Catalog {
		of := fmt.Sprintf("product %d", p)
		r.equal(of, "sold_quantity", at(d.End.Quantity, p), e.Quantity[p])
		r.number(of, "unit_price", at(d.End.UnitPrice, p), e.UnitPrice[p])
		r.number(of, "trading_price", at(d.End.Trading, p), e.Trading[p])
	}
	for id, got := range sorted.All(e.Agents) {
		want, ok := d.End.Agents[id]
		if !ok {
			r.differ(id, "end", "absent", "an agent of this world")
			continue
		}
		r.equal(id, "shortfall_quantity", want.Missing, got.Missing)
		r.equal(id, "inventory_penalized", want.Left, got.Left)
		r.equal(id, "inventory_input", want.Stock, got.Stock)
		r.equal(id, "inventory_output", want.Output, got.Output)
		r.number(id, "productivity", want.Productivity, got.Productivity)
		r.number(id, "shortfall_penalty", want.Penalty, got.Penalty)
		r.number(id, "storage_cost", want.StorageCost, got.StorageCost)
		r.money(id, "balance", want.Balance, got.Balance)
		r.number(id, "score", want.Score, got.Score)
		r.equal(id, "bankrupt", want.Bankrupt, got.Bankrupt)
	}
}

// published compares the counts and reports that not all files have.
func (r *replay) published(d *Day) {
	if d.Concluded > 0 {
		r.equal("the league", "n_contracts_concluded", d.Concluded, r.w.Statistics().Concluded)
	}
	if d.Reports == nil {
		return
	}
	computed := reports(r.w, r.ids)
	for _, id := range r.ids {
		want, got := d.Reports[id], computed[id]
		r.money(id, "reports.cash", want.Cash, got.Cash)
		r.number(id, "reports.breach_prob", want.BreachProb, got.BreachProb)
		r.number(id, "reports.breach_level", want.BreachLevel, got.BreachLevel)
		r.equal(id, "reports.is_bankrupt", want.Bankrupt, got.Bankrupt)
	}
}

func at[T any](list []T, i int) T {
	var zero T
	if i < len(list) {
		return list[i]
	}
	return zero
}

func (r *replay) number(of, name string, recorded, computed float64) {
	r.near(of, name, recorded, computed, 1)
}

// money compares what an agent has.
func (r *replay) money(agent, name string, recorded, computed float64) {
	r.near(agent, name, recorded, computed, r.w.Config().Factories[r.index[agent]].Balance)
}

func (r *replay) near(of, name string, recorded, computed, scale float64) {
	r.checked.Numbers++
	off := math.Abs(recorded-computed) / max(1, scale, math.Abs(recorded))
	if recorded == computed {
		off = 0
	}
	if !(off <= Tolerance) {
		r.differ(of, name, fmt.Sprint(recorded), fmt.Sprint(computed))
		return
	}
	r.checked.Worst = max(r.checked.Worst, off)
}

func (r *replay) equal(of, name string, recorded, computed any) {
	if r.checked.Numbers++; !reflect.DeepEqual(recorded, computed) {
		r.differ(of, name, fmt.Sprint(recorded), fmt.Sprint(computed))
	}
}

func (r *replay) differ(of, name, recorded, computed string) {
	if r.diff == nil {
		r.diff = &Difference{Day: r.day, Of: of, Number: name, Recorded: recorded, Computed: computed}
	}
}
