package negotiation

// Open adds the negotiations of a day: levels has the agents of each level that may negotiate, in
// order, and boxes the box of each product; the box's index is the negotiation's tag.
//
// Of the levels only every second one calls, from the last one back: each of its agents calls all
// agents of the level before it, as a buyer, then all of the one after it, as a seller. An agent
// that calls both ways, as in chains of four levels and more, has but one set of negotiators, one
// for each of the first kind of partners, and they are taken: the second kind of negotiations is
// stuck, and those that no negotiator is left for are not made at all. middle repairs that. It
// returns how many can begin.
func (e *Engine) Open(levels [][]int, boxes []Box, middle bool) int {
	before := len(e.mechanisms) + e.stuck
	for level := len(levels) - 1; level >= 0; level -= 2 {
		for _, caller := range levels[level] {
			if level > 0 {
				for _, partner := range levels[level-1] {
					e.add(caller, partner, boxes[level], level)
				}
			}
			if level == len(levels)-1 {
				continue
			}
			for i, partner := range levels[level+1] {
				switch {
				case level == 0 || middle:
					e.add(caller, partner, boxes[level+1], level+1)
				case i < len(levels[level-1]):
					e.addStuck(partner, caller)
				}
			}
		}
	}
	return len(e.mechanisms) + e.stuck - before
}

// add adds a negotiation.
func (e *Engine) add(caller, partner int, box Box, tag int) {
	i := len(e.mechanisms)
	e.mechanisms = append(e.mechanisms, Mechanism{
		Agents: [2]int{caller, partner}, Slots: [2]int{e.slot(caller, partner, i), e.slot(partner, caller, i)}, Tag: tag, Day: e.day, Box: box,
	})
	e.live = append(e.live, i)
	if e.witness != nil {
		e.witness.Opened(&e.mechanisms[i])
	}
}

// addStuck gives an agent a slot whose negotiation never begins, and keeps the day from ending
// before its last pass.
func (e *Engine) addStuck(agent, partner int) {
	e.slot(agent, partner, -1)
	e.stuck++
}

func (e *Engine) slot(agent, partner, mechanism int) int {
	p := &e.parties[agent]
	p.Slots = append(p.Slots, slot{Mechanism: mechanism, Partner: partner})
	p.Running++
	return len(p.Slots) - 1
}
