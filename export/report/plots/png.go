package plots

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"hash/crc32"
	"image"
)

// encodePNG returns an opaque picture as a PNG file. Every row is the difference to the row above,
// which is nearly all zeros in a drawing: that is as small as what image/png makes, which tries five
// filters for every row, in less than half of its time.
func encodePNG(m *image.RGBA) ([]byte, error) {
	var out bytes.Buffer
	out.WriteString("\x89PNG\r\n\x1a\n")
	chunk := func(name string, data []byte) {
		var number [4]byte
		binary.BigEndian.PutUint32(number[:], uint32(len(data)))
		out.Write(number[:])
		sum := crc32.NewIEEE()
		sum.Write([]byte(name))
		sum.Write(data)
		out.WriteString(name)
		out.Write(data)
		binary.BigEndian.PutUint32(number[:], sum.Sum32())
		out.Write(number[:])
	}
	width, height := m.Rect.Dx(), m.Rect.Dy()
	head := binary.BigEndian.AppendUint32(nil, uint32(width))
	head = binary.BigEndian.AppendUint32(head, uint32(height))
	// Eight bits of red, green and blue each, and the only methods that there are.
	chunk("IHDR", append(head, 8, 2, 0, 0, 0))
	var packed bytes.Buffer
	z, err := zlib.NewWriterLevel(&packed, zlib.BestSpeed)
	if err != nil {
		return nil, err
	}
	const up = 2 // the filter: each byte less the one above, and 0 above the first row
	row, above := make([]byte, 1+3*width), make([]byte, 4*width)
	row[0] = up
	for y := range height {
		pixels := m.Pix[y*m.Stride:][:4*width]
		for x := range width {
			row[1+3*x] = pixels[4*x] - above[4*x]
			row[2+3*x] = pixels[4*x+1] - above[4*x+1]
			row[3+3*x] = pixels[4*x+2] - above[4*x+2]
		}
		above = pixels
		if _, err := z.Write(row); err != nil {
			return nil, err
		}
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	chunk("IDAT", packed.Bytes())
	chunk("IEND", nil)
	return out.Bytes(), nil
}
