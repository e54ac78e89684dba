package portable

import (
	"fmt"
	"math"
	"slices"
)

var sampleOperators = []operator{
	{name: "GridSample", versions: []int{16, 20, 22}, minIn: 2, maxIn: 2, build: buildGridSample},
	{name: "AffineGrid", versions: []int{20}, minIn: 2, maxIn: 2, build: buildAffineGrid},
	{name: "RoiAlign", versions: []int{10, 16, 22}, minIn: 3, maxIn: 3, build: buildRoiAlign},
	{name: "MaxRoiPool", versions: []int{1, 22}, minIn: 2, maxIn: 2, build: buildMaxRoiPool},
	{name: "DeformConv", versions: []int{19, 22}, minIn: 3, maxIn: 5, build: buildDeformConv},
}

// sampler reads images at real coordinates.
type sampler struct {
	mode, padding string
	corners       bool
}

func buildGridSample(n *node) (kernel, error) {
	s := sampler{mode: n.Str("mode", "linear"), padding: n.Str("padding_mode", "zeros"), corners: n.Int("align_corners", 0) != 0}
	switch s.mode {
	case "bilinear":
		s.mode = "linear"
	case "bicubic":
		s.mode = "cubic"
	case "linear", "nearest", "cubic":
	default:
		return nil, fmt.Errorf("mode %q is not known", s.mode)
	}
	switch s.padding {
	case "zeros", "border", "reflection":
	default:
		return nil, fmt.Errorf("padding_mode %q is not known", s.padding)
	}
	return byFloat(func(c *call) error { return gridSample[float32](c, s) }, func(c *call) error { return gridSample[float64](c, s) }), nil
}

// pixel maps [-1, 1] to pixel coordinates.
func (s *sampler) pixel(v float64, d int) float64 {
	if s.corners {
		return (v + 1) / 2 * float64(d-1)
	}
	return ((v+1)*float64(d) - 1) / 2
}

// reflect folds a coordinate into the image.
func (s *sampler) reflect(x float64, d int) float64 {
	lo, hi := -0.5, float64(d)-0.5
	if s.corners {
		lo, hi = 0, float64(d-1)
	}
	if span := hi - lo; span > 0 {
		x = math.Mod(math.Abs(x-lo), 2*span)
		if x > span {
			x = 2*span - x
		}
		return x + lo
	}
	return 0
}

// place maps an integer position to one inside the image, or reports that it reads as zero.
func (s *sampler) place(p, d int) (int, bool) {
	if p >= 0 && p < d {
		return p, true
	}
	switch s.padding {
	case "zeros":
		return 0, false
	case "border":
		return min(max(p, 0), d-1), true
	}
	return min(max(int(s.reflect(float64(p), d)), 0), d-1), true
}

// taps appends positions and weights along one axis.
func (s *sampler) taps(x float64, at []int, w []float64) ([]int, []float64) {
	base := math.Floor(x)
	f, p := x-base, int(base)
	switch s.mode {
	case "nearest":
		return append(at, int(math.RoundToEven(x))), append(w, 1)
	case "linear":
		return append(at, p, p+1), append(w, 1-f, f)
	}
	r := resizer{cubic: -0.75}
	for k := -1; k <= 2; k++ {
		at, w = append(at, p+k), append(w, r.cubicWeight(float64(k)-f))
	}
	return at, w
}

func gridSample[T float](c *call, s sampler) error {
	x, grid := c.arg(0), c.arg(1)
	nd := x.Rank() - 2
	if nd < 2 || nd > 3 || grid.Rank() != nd+2 || grid.Shape()[nd+1] != nd || grid.Shape()[0] != x.Shape()[0] {
		return fmt.Errorf("input %v with grid %v", x, grid)
	}
	g, err := asFloats(grid)
	if err != nil {
		return err
	}
	in := [3]int{1, 1, 1}
	copy(in[3-nd:], x.Shape()[2:])
	batch, channels := x.Shape()[0], x.Shape()[1]
	shape := append(append(c.shapeBuf(0), batch, channels), grid.Shape()[1:nd+1]...)
	dst := data[T](c.make(0, x.DType(), c.keepBuf(0, shape)...))
	src, size := data[T](x), volume(in)
	points := product(grid.Shape()[1 : nd+1])
	if size == 0 {
		return fmt.Errorf("input %v has no pixels", x)
	}
	var at [3][]int
	var w [3][]float64
	for b := range batch {
		for o := range points {
			v := g[(b*points+o)*nd:][:nd]
			bad := false
			for a := range 3 {
				at[a], w[a] = at[a][:0], w[a][:0]
				if a < 3-nd {
					at[a], w[a] = append(at[a], 0), append(w[a], 1)
					continue
				}
				// The grid's last axis is x, y, z: innermost first.
				p := s.pixel(v[2-a], in[a])
				if s.mode != "cubic" {
					switch s.padding {
					case "border":
						p = math.Max(0, math.Min(float64(in[a]-1), p))
					case "reflection":
						p = s.reflect(p, in[a])
						p = math.Max(0, math.Min(float64(in[a]-1), p))
					}
				}
				if math.IsNaN(p) || math.Abs(p) > 1<<40 {
					bad = true
					continue
				}
				at[a], w[a] = s.taps(p, at[a], w[a])
			}
			for ch := range channels {
				sum, plane := 0.0, src[(b*channels+ch)*size:]
				for i0, p0 := range at[0] {
					q0, ok0 := s.place(p0, in[0])
					for i1, p1 := range at[1] {
						q1, ok1 := s.place(p1, in[1])
						for i2, p2 := range at[2] {
							if q2, ok2 := s.place(p2, in[2]); ok0 && ok1 && ok2 && !bad {
								sum += w[0][i0] * w[1][i1] * w[2][i2] * float64(plane[(q0*in[1]+q1)*in[2]+q2])
							}
						}
					}
				}
				dst[(b*channels+ch)*points+o] = T(sum)
			}
		}
	}
	return nil
}

func buildAffineGrid(n *node) (kernel, error) {
	corners := n.Int("align_corners", 0) != 0
	return byFloat(func(c *call) error { return affineGrid[float32](c, corners) }, func(c *call) error { return affineGrid[float64](c, corners) }), nil
}

// affineGrid maps the points of an even grid over [-1, 1] by one affine map per batch element. The
// standard also defines the operator by others, but that definition is wrong for a batch of one.
func affineGrid[T float](c *call, corners bool) error {
	theta := c.arg(0)
	size, err := intsOf(c.shapeBuf(0), c.arg(1))
	if err != nil {
		return fmt.Errorf("size: %w", err)
	}
	c.keepBuf(0, size)
	nd := len(size) - 2
	if nd < 2 || nd > 3 || !slices.Equal(theta.Shape(), []int{size[0], nd, nd + 1}) {
		return fmt.Errorf("theta %v for size %v", theta, slices.Clone(size))
	}
	shape := append(append(append(c.shapeBuf(1), size[0]), size[2:]...), nd)
	out, m := data[T](c.make(0, theta.DType(), c.keepBuf(1, shape)...)), data[T](theta)
	points := product(size[2:])
	var p [3]float64
	for b := range size[0] {
		for i := range points {
			// p is x, y, z: the innermost axis first.
			rest := i
			for k := range nd {
				d := size[len(size)-1-k]
				at := float64(rest % d)
				rest /= d
				switch {
				case !corners:
					p[k] = (2*at+1)/float64(d) - 1
				case d > 1:
					p[k] = 2*at/float64(d-1) - 1
				default:
					p[k] = 1 // the standard leaves a single corner open; this is ONNX Runtime's
				}
			}
			for r := range nd {
				row := m[(b*nd+r)*(nd+1):][:nd+1]
				v := float64(row[nd])
				for k := range nd {
					v += float64(row[k]) * p[k]
				}
				out[(b*points+i)*nd+r] = T(v)
			}
		}
	}
	return nil
}

// bilinear reads a plane at a real position, zero outside by more than a pixel.
func bilinear[T float](plane []T, h, w int, y, x float64) float64 {
	if !(y > -1 && x > -1 && y < float64(h) && x < float64(w)) {
		return 0
	}
	y0, x0 := int(math.Floor(y)), int(math.Floor(x))
	fy, fx := y-float64(y0), x-float64(x0)
	at := func(i, j int) float64 {
		if i < 0 || j < 0 || i >= h || j >= w {
			return 0
		}
		return float64(plane[i*w+j])
	}
	return (1-fy)*((1-fx)*at(y0, x0)+fx*at(y0, x0+1)) + fy*((1-fx)*at(y0+1, x0)+fx*at(y0+1, x0+1))
}

func buildRoiAlign(n *node) (kernel, error) {
	r := roiAlign{h: n.Int("output_height", 1), w: n.Int("output_width", 1), ratio: n.Int("sampling_ratio", 0), scale: float64(n.Float("spatial_scale", 1))}
	// The half-pixel shift came with opset 16.
	half := n.opset >= 16
	if s := n.Str("coordinate_transformation_mode", ""); s != "" {
		half = s == "half_pixel"
	}
	r.shift = 0
	if half {
		r.shift = 0.5
	}
	r.half = half
	switch m := n.Str("mode", "avg"); m {
	case "avg", "max":
		r.max = m == "max"
	default:
		return nil, fmt.Errorf("mode %q is not known", m)
	}
	if r.h < 1 || r.w < 1 {
		return nil, fmt.Errorf("output of %d × %d", r.h, r.w)
	}
	return byFloat(func(c *call) error { return runRoiAlign[float32](c, r) }, func(c *call) error { return runRoiAlign[float64](c, r) }), nil
}

type roiAlign struct {
	h, w, ratio  int
	scale, shift float64
	half, max    bool
}

func runRoiAlign[T float](c *call, r roiAlign) error {
	x, rois := c.arg(0), c.arg(1)
	idx, err := c.indices(2, 0)
	if err != nil {
		return err
	}
	if x.Rank() != 4 || rois.Rank() != 2 || rois.Shape()[1] != 4 || len(idx) != rois.Shape()[0] || rois.DType() != x.DType() {
		return fmt.Errorf("input %v with regions %v and %d batch indices", x, rois, len(idx))
	}
	channels, h, w := x.Shape()[1], x.Shape()[2], x.Shape()[3]
	if h*w == 0 {
		return fmt.Errorf("input %v has no pixels", x)
	}
	out := data[T](c.make(0, x.DType(), len(idx), channels, r.h, r.w))
	box, src := data[T](rois), data[T](x)
	for i, v := range idx {
		b, err := index(v, x.Shape()[0])
		if err != nil {
			return err
		}
		x1, y1 := float64(box[4*i])*r.scale-r.shift, float64(box[4*i+1])*r.scale-r.shift
		rw, rh := float64(box[4*i+2])*r.scale-r.shift-x1, float64(box[4*i+3])*r.scale-r.shift-y1
		if !r.half {
			rw, rh = math.Max(rw, 1), math.Max(rh, 1)
		}
		if !(math.Abs(rw) < 1<<30 && math.Abs(rh) < 1<<30) {
			return fmt.Errorf("region %d has size %v × %v", i, rh, rw)
		}
		bh, bw := rh/float64(r.h), rw/float64(r.w)
		ny, nx := r.ratio, r.ratio
		if r.ratio <= 0 {
			ny, nx = int(math.Ceil(bh)), int(math.Ceil(bw))
		}
		for ch := range channels {
			plane := src[(b*channels+ch)*h*w:][:h*w]
			for py := range r.h {
				for px := range r.w {
					sum, best := 0.0, math.Inf(-1)
					for iy := range ny {
						y := y1 + float64(py)*bh + (float64(iy)+0.5)*bh/float64(ny)
						for ix := range nx {
							xx := x1 + float64(px)*bw + (float64(ix)+0.5)*bw/float64(nx)
							v, m := r.sample(plane2[T]{plane, h, w}, y, xx)
							sum, best = sum+v, math.Max(best, m)
						}
					}
					v := sum / math.Max(1, float64(ny*nx))
					if r.max {
						v = best
						if ny*nx <= 0 {
							v = 0
						}
					}
					out[((i*channels+ch)*r.h+py)*r.w+px] = T(v)
				}
			}
		}
	}
	return nil
}

// plane2 is one channel of an image.
type plane2[T float] struct {
	v    []T
	h, w int
}

// sample interpolates with coordinates clamped to the image, unless they are off by more than a
// pixel. The second result is the largest weighted corner, which is what the max mode takes.
func (r *roiAlign) sample(p interface {
	corner(i, j int) float64
	size() (h, w int)
}, y, x float64) (float64, float64) {
	h, w := p.size()
	if y < -1 || y > float64(h) || x < -1 || x > float64(w) {
		return 0, 0
	}
	y, x = math.Max(y, 0), math.Max(x, 0)
	y0, x0 := int(y), int(x)
	y1, x1 := y0+1, x0+1
	if y0 >= h-1 {
		y0, y1, y = h-1, h-1, float64(h-1)
	}
	if x0 >= w-1 {
		x0, x1, x = w-1, w-1, float64(w-1)
	}
	fy, fx := y-float64(y0), x-float64(x0)
	a, b := (1-fy)*(1-fx)*p.corner(y0, x0), (1-fy)*fx*p.corner(y0, x1)
	d, e := fy*(1-fx)*p.corner(y1, x0), fy*fx*p.corner(y1, x1)
	return a + b + d + e, math.Max(math.Max(a, b), math.Max(d, e))
}

func (p plane2[T]) corner(i, j int) float64 { return float64(p.v[i*p.w+j]) }
func (p plane2[T]) size() (h, w int)        { return p.h, p.w }

func buildMaxRoiPool(n *node) (kernel, error) {
	shape, scale := n.Ints("pooled_shape"), float64(n.Float("spatial_scale", 1))
	if len(shape) != 2 || shape[0] < 1 || shape[1] < 1 {
		return nil, fmt.Errorf("pooled_shape is %v, expected two positive extents", shape)
	}
	return byFloat(func(c *call) error { return maxRoiPool[float32](c, shape[0], shape[1], scale) },
		func(c *call) error { return maxRoiPool[float64](c, shape[0], shape[1], scale) }), nil
}

func maxRoiPool[T float](c *call, ph, pw int, scale float64) error {
	x, rois := c.arg(0), c.arg(1)
	if x.Rank() != 4 || rois.Rank() != 2 || rois.Shape()[1] != 5 || rois.DType() != x.DType() {
		return fmt.Errorf("input %v with regions %v", x, rois)
	}
	channels, h, w := x.Shape()[1], x.Shape()[2], x.Shape()[3]
	n := rois.Shape()[0]
	out, src, box := data[T](c.make(0, x.DType(), n, channels, ph, pw)), data[T](x), data[T](rois)
	for i := range n {
		r := box[5*i:][:5]
		b, err := index(int64(r[0]), x.Shape()[0])
		if err != nil {
			return err
		}
		x1, y1 := int(math.Round(float64(r[1])*scale)), int(math.Round(float64(r[2])*scale))
		rh := max(int(math.Round(float64(r[4])*scale))-y1+1, 1)
		rw := max(int(math.Round(float64(r[3])*scale))-x1+1, 1)
		for ch := range channels {
			plane := src[(b*channels+ch)*h*w:][:h*w]
			for py := range ph {
				lo, hi := y1+py*rh/ph, y1+((py+1)*rh+ph-1)/ph
				lo, hi = min(max(lo, 0), h), min(max(hi, 0), h)
				for px := range pw {
					l, r := x1+px*rw/pw, x1+((px+1)*rw+pw-1)/pw
					l, r = min(max(l, 0), w), min(max(r, 0), w)
					var best T
					for y := lo; y < hi; y++ {
						for xx := l; xx < r; xx++ {
							if v := plane[y*w+xx]; y == lo && xx == l || v > best {
								best = v
							}
						}
					}
					out[((i*channels+ch)*ph+py)*pw+px] = best
				}
			}
		}
	}
	return nil
}

func buildDeformConv(n *node) (kernel, error) {
	w, err := buildWindow(n)
	if err != nil {
		return nil, err
	}
	group, offsets := n.Int("group", 1), n.Int("offset_group", 1)
	if offsets < 1 {
		return nil, fmt.Errorf("offset_group is %d", offsets)
	}
	return byFloat(func(c *call) error { return deformConv[float32](c, w, group, offsets) },
		func(c *call) error { return deformConv[float64](c, w, group, offsets) }), nil
}

func deformConv[T float](c *call, w window, group, offsetGroups int) error {
	x, weight, offset, bias, mask := c.arg(0), c.arg(1), c.arg(2), c.arg(3), c.arg(4)
	if err := convShapes(x, weight, bias, group, 1); err != nil {
		return err
	}
	if x.Rank() != 4 {
		return unsupported("input of rank %d", x.Rank())
	}
	in, out, err := w.convolves(x.Shape(), weight.Shape())
	if err != nil {
		return err
	}
	batch, all, taps, positions := x.Shape()[0], x.Shape()[1], volume(w.kernel), volume(out)
	if all%offsetGroups != 0 || offset.DType() != x.DType() || offset.Len() != batch*offsetGroups*taps*2*positions ||
		mask != nil && (mask.DType() != x.DType() || mask.Len() != batch*offsetGroups*taps*positions) {
		return fmt.Errorf("input %v with offsets %v and mask %v", x, offset, mask)
	}
	maps, channels := weight.Shape()[0], all/group
	shape := w.appendSpatial(append(c.shapeBuf(0), batch, maps), out)
	dst, src, wd, off := data[T](c.make(0, x.DType(), c.keepBuf(0, shape)...)), data[T](x), data[T](weight), data[T](offset)
	rows := scratch[T](c, 0, all*taps*positions)
	for b := range batch {
		for ch := range all {
			plane := src[(b*all+ch)*volume(in):][:volume(in)]
			og := ch / (all / offsetGroups)
			for k := range taps {
				ky, kx := k/w.kernel[2], k%w.kernel[2]
				base := (b*offsetGroups+og)*taps + k
				for o := range positions {
					y := float64(o/out[2]*w.stride[1]-w.begin[1]+ky*w.dilation[1]) + float64(off[base*2*positions+o])
					xx := float64(o%out[2]*w.stride[2]-w.begin[2]+kx*w.dilation[2]) + float64(off[(base*2+1)*positions+o])
					v := bilinear(plane, in[1], in[2], y, xx)
					if mask != nil {
						v *= float64(data[T](mask)[base*positions+o])
					}
					rows[(ch*taps+k)*positions+o] = T(v)
				}
			}
		}
		per, patch := maps/group, channels*taps
		for g := range group {
			gemm(c, false, false, per, positions, patch, 1, wd[g*per*patch:], patch, rows[g*patch*positions:], positions, 0, dst[(b*maps+g*per)*positions:], positions)
		}
	}
	addBias(dst, bias, maps, positions)
	return nil
}
