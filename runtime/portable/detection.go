package portable

import (
	"fmt"
	"math"
	"slices"

	"github.com/onnxrl/onnxrl/runtime/tensor"
)

var detectionOperators = []operator{
	{name: "NonMaxSuppression", versions: []int{10, 11}, minIn: 2, maxIn: 5, build: buildNMS},
}

// box is a rectangle by its corners.
type box struct{ x1, y1, x2, y2 float64 }

func (b box) area() float64 { return (b.x2 - b.x1) * (b.y2 - b.y1) }

// overlap is the intersection's area over the union's, 0 where either is empty.
func (b box) overlap(o box) float64 {
	w, h := math.Min(b.x2, o.x2)-math.Max(b.x1, o.x1), math.Min(b.y2, o.y2)-math.Max(b.y1, o.y1)
	if w <= 0 || h <= 0 || b.area() <= 0 || o.area() <= 0 {
		return 0
	}
	return w * h / (b.area() + o.area() - w*h)
}

func buildNMS(n *node) (kernel, error) {
	center := n.Int("center_point_box", 0) != 0
	return func(c *call) error {
		bt, st := c.arg(0), c.arg(1)
		if bt.Rank() != 3 || st.Rank() != 3 || bt.Shape()[2] != 4 || bt.Shape()[0] != st.Shape()[0] || bt.Shape()[1] != st.Shape()[2] {
			return fmt.Errorf("boxes %v with scores %v", bt, st)
		}
		coords, err := asFloats(bt)
		if err != nil {
			return err
		}
		scores, err := asFloats(st)
		if err != nil {
			return err
		}
		most, iou, least := 0, 0.0, math.Inf(-1)
		if t := c.arg(2); t != nil && t.Len() > 0 {
			if most, err = scalarInt(t); err != nil {
				return err
			}
		}
		for i, p := range []*float64{&iou, &least} {
			if t := c.arg(3 + i); t != nil && t.Len() > 0 {
				v, err := asFloats(t)
				if err != nil {
					return err
				}
				*p = v[0]
			}
		}
		count := bt.Shape()[1]
		boxes := make([]box, len(coords)/4)
		for i := range boxes {
			v := coords[4*i:][:4]
			if center {
				boxes[i] = box{v[0] - v[2]/2, v[1] - v[3]/2, v[0] + v[2]/2, v[1] + v[3]/2}
			} else {
				boxes[i] = box{math.Min(v[1], v[3]), math.Min(v[0], v[2]), math.Max(v[1], v[3]), math.Max(v[0], v[2])}
			}
		}
		var chosen []int64
		for b := range st.Shape()[0] {
			for k := range st.Shape()[1] {
				s := scores[(b*st.Shape()[1]+k)*count:][:count]
				order := make([]int, 0, count)
				for i, v := range s {
					if v > least || math.IsInf(least, -1) {
						order = append(order, i)
					}
				}
				slices.SortStableFunc(order, func(p, q int) int {
					switch {
					case s[p] > s[q]:
						return -1
					case s[p] < s[q]:
						return 1
					}
					return 0
				})
				var taken []int
				for _, i := range order {
					if len(taken) >= most {
						break
					}
					clash := slices.ContainsFunc(taken, func(j int) bool { return boxes[b*count+i].overlap(boxes[b*count+j]) > iou })
					if !clash {
						taken = append(taken, i)
						chosen = append(chosen, int64(b), int64(k), int64(i))
					}
				}
			}
		}
		copy(c.make(0, tensor.Int64, len(chosen)/3, 3).Int64s(), chosen)
		return nil
	}, nil
}
