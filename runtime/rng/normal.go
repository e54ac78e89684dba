package rng

import "math"

// The normal distribution by the ziggurat method (Marsaglia and Tsang 2000, "The Ziggurat Method
// for Generating Random Variables"). 256 layers of equal area cover the area under exp(-x²/2), x
// >= 0. A point of a layer that lies below the next layer's edge needs no further test. The layer
// and the abscissa are taken from separate bits, as Doornik 2005, "An Improved Ziggurat Method to
// Generate Normal Random Samples", requires.
const (
	zigguratR = 3.654152885361008771645429720399515762975 // where the tail begins: layers are 256
	zigguratV = 0.004928673233974655347361775402336028069 // area of each layer
	zigguratF = 0.001260285930498597564133462215543753409 // exp(-R²/2)
	zigguratW = 3.910757959524915869549621434510564958294 // V / exp(-R²/2): width of the base layer as a rectangle
)

var zigguratX, zigguratY = zigguratTables()

// zigguratTables returns the right edge of each layer and the density there. They are computed and
// not listed: only correctly rounded operations and log below are involved, so they are the same
// everywhere.
func zigguratTables() (x, y [257]float64) {
	x[0], x[1] = zigguratW, zigguratR
	y[0], y[1] = 0, zigguratF
	for i := 2; i < 256; i++ {
		y[i] = y[i-1] + float64(zigguratV/x[i-1])
		x[i] = math.Sqrt(float64(-2 * log(y[i])))
	}
	x[256], y[256] = 0, 1
	return x, y
}

// Normal returns a value of the standard normal distribution.
func (s *Stream) Normal() float64 {
	for {
		b := s.pcg.Uint64()
		layer := b & 255
		x := float64(float64(b>>11)*0x1p-53) * zigguratX[layer]
		if x >= zigguratX[layer+1] {
			if layer == 0 {
				x = s.normalTail()
			} else {
				low, high := zigguratY[layer], zigguratY[layer+1]
				y := low + float64(s.open()*float64(high-low))
				if log(y) >= float64(-0.5*float64(x*x)) {
					continue
				}
			}
		}
		if b&256 != 0 {
			return -x
		}
		return x
	}
}

// normalTail returns a value beyond R (Marsaglia 1964, "Generating a Variable from the Tail of the
// Normal Distribution").
func (s *Stream) normalTail() float64 {
	for {
		x := float64(-log(s.open()) / zigguratR)
		y := -log(s.open())
		if float64(2*y) >= float64(x*x) {
			return zigguratR + x
		}
	}
}

// FillNormal32 fills dst with the values that as many calls of float32(mean + std*Normal()) give.
func (s *Stream) FillNormal32(dst []float32, mean, std float64) {
	for i := range dst {
		dst[i] = float32(mean + float64(std*s.Normal()))
	}
}
