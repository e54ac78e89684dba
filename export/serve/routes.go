package serve

import (
	"cmp"
	"hash/fnv"
	"io"
	"math"
)

// route is a share of the requests: those whose place in [0, 1) is below upTo and not below the
// route before it.
type route struct {
	upTo float64
	v    *version
}

// target is a version that runs in the shadow of others.
type target struct {
	v     *version
	share float64
}

// direct resolves routes and shadows. Those whose version does not serve are left out, and
// reported.
func (t *table) direct(c Config) []error {
	var errs []error
	sum := 0.0
	for _, r := range c.Routes {
		v, err := t.find(r.Version)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if r.Weight > 0 {
			sum += r.Weight
			t.routes = append(t.routes, route{upTo: sum, v: v})
		}
	}
	for i := range t.routes {
		t.routes[i].upTo /= sum
	}
	for _, s := range c.Shadows {
		v, err := t.find(s.Version)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		share := s.Share
		if share == 0 {
			share = 1
		}
		t.shadows = append(t.shadows, target{v: v, share: share})
	}
	return errs
}

// route chooses by the identifier of the sequence, or of the request, so that the same one gets the
// same version in every process; without either, requests are spread evenly in their order.
func (t *table) route(m *model, req *Request) *version {
	place := placeOf(cmp.Or(req.Sequence.ID, req.ID), "route")
	if req.Sequence.ID == "" && req.ID == "" {
		place = spread(m.turn.Add(1))
	}
	for _, r := range t.routes {
		if place < r.upTo {
			return r.v
		}
	}
	return t.routes[len(t.routes)-1].v
}

// placeOf is where an identifier lies in [0, 1): FNV-1a, finished as splitmix64 does because FNV
// leaves the high bits of short texts alike.
func placeOf(id, purpose string) float64 {
	h := fnv.New64a()
	_, _ = io.WriteString(h, purpose) // a hash takes everything
	_, _ = io.WriteString(h, "\x00")
	_, _ = io.WriteString(h, id)
	x := h.Sum64()
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	x ^= x >> 31
	return float64(x>>11) / (1 << 53)
}

// spread is the n-th point of the sequence n·φ mod 1, whose points are as even as can be for every
// number of them.
func spread(n uint64) float64 {
	return math.Ldexp(float64(n*0x9e3779b97f4a7c15>>11), -53)
}
