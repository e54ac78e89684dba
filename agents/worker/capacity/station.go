package capacity

import "github.com/onnxrl/onnxrl/runtime/rng"

// station is what so many can use at once, first come first served.
type station struct {
	*clock
	name    string
	servers int
	busy    int
	waiting []func(release func())
	// draws makes the times exponential; nil where they are what they are.
	draws *rng.Stream
	// served and waited are integrals over time, of the servers that were busy and of those who
	// waited, up to the time last.
	served, waited, last float64
	// most is the longest that the queue was, and visits counts those who came.
	most, visits int
}

func (s *station) count() {
	d := s.now - s.last
	s.served += d * float64(s.busy)
	s.waited += d * float64(len(s.waiting))
	s.last = s.now
}

// take calls then when a server is free, which is taken until release is called.
func (s *station) take(then func(release func())) {
	s.count()
	s.visits++
	if s.busy == s.servers {
		s.waiting = append(s.waiting, then)
		s.most = max(s.most, len(s.waiting))
		return
	}
	s.busy++
	then(s.release)
}

func (s *station) release() {
	s.count()
	if len(s.waiting) == 0 {
		s.busy--
		return
	}
	next := s.waiting[0]
	s.waiting[0] = nil
	s.waiting = s.waiting[1:]
	next(s.release)
}

// use takes a server for so many seconds, and then calls then, which may be nil.
func (s *station) use(seconds float64, then func()) {
	if seconds <= 0 {
		if then != nil {
			then()
		}
		return
	}
	s.take(func(release func()) {
		if s.draws != nil {
			seconds *= s.draws.Exp()
		}
		s.after(seconds, func() {
			release()
			if then != nil {
				then()
			}
		})
	})
}

// Use is how a station was used; the JSON keys are stable.
type Use struct {
	Station string `json:"station"`
	// Utilisation is the mean share of its servers that were busy, Queue how many waited in the
	// mean, and Longest at most.
	Utilisation float64 `json:"utilisation"`
	Queue       float64 `json:"mean_queue"`
	Longest     int     `json:"longest_queue"`
}

func (s *station) usage() Use {
	s.count()
	u := Use{Station: s.name, Longest: s.most}
	if s.now > 0 {
		u.Utilisation, u.Queue = s.served/s.now/float64(s.servers), s.waited/s.now
	}
	return u
}

// counter is where tasks wait for whoever polls for them, or polls for tasks.
type counter struct {
	tasks []*task
	polls []func(t *task)
}

func (c *counter) offer(t *task) {
	if len(c.polls) == 0 {
		c.tasks = append(c.tasks, t)
		return
	}
	p := c.polls[0]
	c.polls[0] = nil
	c.polls = c.polls[1:]
	p(t)
}

func (c *counter) poll(p func(t *task)) {
	if len(c.tasks) == 0 {
		c.polls = append(c.polls, p)
		return
	}
	t := c.tasks[0]
	c.tasks[0] = nil
	c.tasks = c.tasks[1:]
	p(t)
}
