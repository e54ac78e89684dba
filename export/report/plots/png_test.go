package plots

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"math/rand/v2"
	"testing"
)

// TestEncodePNG decodes pictures of several sizes, with few colours and with many, to the pixels that
// they were made of.
func TestEncodePNG(t *testing.T) {
	r, compared := rand.New(rand.NewPCG(1, 2)), 0
	for _, size := range []image.Point{{1, 1}, {3, 7}, {64, 1}, {500, 300}} {
		for _, colours := range []int{1, 3, 1 << 24} {
			m := image.NewRGBA(image.Rectangle{Max: size})
			for y := range size.Y {
				for x := range size.X {
					n := uint32(r.IntN(colours)) * 2654435761
					m.SetRGBA(x, y, color.RGBA{uint8(n), uint8(n >> 8), uint8(n >> 16), 255})
				}
			}
			data, err := encodePNG(m)
			if err != nil {
				t.Fatal(err)
			}
			got, err := png.Decode(bytes.NewReader(data))
			if err != nil {
				t.Fatal(err)
			}
			if got.Bounds() != m.Bounds() {
				t.Fatalf("%v, expected %v", got.Bounds(), m.Bounds())
			}
			for y := range size.Y {
				for x := range size.X {
					if color.RGBAModel.Convert(got.At(x, y)) != m.RGBAAt(x, y) {
						t.Fatalf("%v, %d colours: pixel %d, %d is %v, expected %v", size, colours, x, y, got.At(x, y), m.RGBAAt(x, y))
					}
					compared++
				}
			}
		}
	}
	if compared != 3*(1+21+64+150_000) {
		t.Errorf("%d pixels compared", compared)
	}
}
