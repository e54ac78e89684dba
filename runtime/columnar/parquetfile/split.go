package parquetfile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/bitutil"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/apache/arrow/go/v15/parquet"
	"github.com/apache/arrow/go/v15/parquet/compress"
	"github.com/apache/arrow/go/v15/parquet/file"
	"github.com/apache/arrow/go/v15/parquet/metadata"
	"github.com/onnxrl/onnxrl/runtime/columnar"
)

// byteStreamSplit is the encoding BYTE_STREAM_SPLIT of parquet.thrift, which the library does not
// know: of n values of k bytes first the n first bytes, then the n second ones, and so on.
const byteStreamSplit = 9

// encodingNames are the encodings of parquet.thrift by their numbers.
var encodingNames = map[int]string{
	0: "PLAIN", 2: "PLAIN_DICTIONARY", 3: "RLE", 4: "BIT_PACKED", 5: "DELTA_BINARY_PACKED", 6: "DELTA_LENGTH_BYTE_ARRAY", 7: "DELTA_BYTE_ARRAY", 8: "RLE_DICTIONARY", byteStreamSplit: "BYTE_STREAM_SPLIT",
}

// codecNames are the compressions of parquet.thrift that the library does not read.
var codecNames = map[int]string{3: "LZO", 5: "LZ4", 7: "LZ4_RAW"}

// readable reports, before a column of a row group is read, how its pages are encoded: split says
// that some are by byteStreamSplit, and the error what cannot be read.
func readable(chunk *metadata.ColumnChunkMetaData, field arrow.Field, path string) (split bool, err error) {
	refuse := func(what, instead string) error {
		return fmt.Errorf("%w: column %q (%v) has %s, which is not read; write the file with %s, such as by pyarrow.parquet.write_table(pyarrow.parquet.read_table(FILE), NEW)", columnar.ErrUnsupported, path, field.Type, what, instead)
	}
	if name, ok := codecNames[int(chunk.Compression())]; ok {
		return false, refuse("the compression "+name, "snappy, zstd, gzip or none")
	}
	for _, e := range chunk.Encodings() {
		switch int(e) {
		case 0, 2, 3, 5, 6, 7, 8:
		case 4: // Of levels, beside the encoding of values, in old files.
		case byteStreamSplit:
			switch field.Type.ID() {
			case arrow.FLOAT32, arrow.FLOAT64, arrow.INT32, arrow.UINT32, arrow.INT64, arrow.UINT64, arrow.DATE32, arrow.TIMESTAMP, arrow.TIME32, arrow.TIME64:
				split = true
			default:
				return false, refuse("the encoding "+encodingNames[byteStreamSplit], "PLAIN or a dictionary")
			}
		default:
			return false, refuse(fmt.Sprintf("the encoding %d", int(e)), "PLAIN or a dictionary")
		}
	}
	return split, nil
}

// splitPages are the pages of a column, those by byteStreamSplit made into plain ones.
type splitPages struct {
	file.PageReader
	width    int // bytes of a value
	optional bool
	page     file.Page
	err      error
}

func (p *splitPages) Next() bool {
	p.page, p.err = nil, nil
	if !p.PageReader.Next() {
		return false
	}
	p.page = p.PageReader.Page()
	if int(p.page.Encoding()) != byteStreamSplit {
		return true
	}
	data := p.page.Data()
	levels := 0
	switch of := p.page.(type) {
	case *file.DataPageV1:
		if p.optional {
			if len(data) < 4 {
				p.err = errors.New("a page has no levels")
				return false
			}
			levels = 4 + int(binary.LittleEndian.Uint32(data))
		}
	case *file.DataPageV2:
		levels = int(of.DefinitionLevelByteLen()) + int(of.RepetitionLevelByteLen())
	}
	if levels < 0 || levels > len(data) || (len(data)-levels)%p.width != 0 {
		p.err = fmt.Errorf("a page of %d bytes has levels of %d and values of %d each", len(data), levels, p.width)
		return false
	}
	plain := slices.Clone(data)
	joinBytes(plain[levels:], data[levels:], p.width)
	buffer := memory.NewBufferBytes(plain)
	switch of := p.page.(type) {
	case *file.DataPageV1:
		p.page = file.NewDataPageV1(buffer, of.NumValues(), parquet.Encodings.Plain, parquet.Encoding(of.DefinitionLevelEncoding()), parquet.Encoding(of.RepetitionLevelEncoding()), int32(len(plain)))
	case *file.DataPageV2:
		p.page = file.NewDataPageV2(buffer, of.NumValues(), of.NumNulls(), of.NumRows(), parquet.Encodings.Plain, of.DefinitionLevelByteLen(), of.RepetitionLevelByteLen(), int32(len(plain)), false)
	default:
		p.err = fmt.Errorf("a page of kind %T", p.page)
		return false
	}
	return true
}

func (p *splitPages) Page() file.Page { return p.page }

func (p *splitPages) Err() error { return errors.Join(p.err, p.PageReader.Err()) }

func (p *splitPages) Reset(r parquet.BufferedReader, rows int64, codec compress.Compression, crypto *file.CryptoContext) {
	p.page, p.err = nil, nil
	p.PageReader.Reset(r, rows, codec, crypto)
}

// joinBytes makes values of width bytes of their split bytes.
func joinBytes(plain, split []byte, width int) {
	n := len(split) / width
	for b := range width {
		for i, x := range split[b*n : (b+1)*n] {
			plain[i*width+b] = x
		}
	}
}

// splitColumn reads a flat column of numbers of which pages are by byteStreamSplit.
func (f *File) splitColumn(group, leaf int, field arrow.Field) (arrow.Array, error) {
	rows := f.Rows(group)
	descr := f.file.MetaData().Schema.Column(leaf)
	if descr.MaxRepetitionLevel() > 0 || descr.MaxDefinitionLevel() > 1 {
		return nil, fmt.Errorf("%w: column %q (%v) has the encoding %s in lists, which is not read", columnar.ErrUnsupported, descr.Path(), field.Type, encodingNames[byteStreamSplit])
	}
	pages, err := f.file.RowGroup(group).GetColumnPageReader(leaf)
	if err != nil {
		return nil, err
	}
	width := 8
	if t := descr.PhysicalType(); t == parquet.Types.Float || t == parquet.Types.Int32 {
		width = 4
	}
	pool := &sync.Pool{New: func() any { return memory.NewResizableBuffer(memory.DefaultAllocator) }}
	r := file.NewColumnReader(descr, &splitPages{PageReader: pages, width: width, optional: descr.MaxDefinitionLevel() > 0}, memory.DefaultAllocator, pool)
	switch r := r.(type) {
	case *file.Float32ColumnChunkReader:
		return numbers(r, field, rows, descr.MaxDefinitionLevel(), arrow.Float32Traits.CastToBytes)
	case *file.Float64ColumnChunkReader:
		return numbers(r, field, rows, descr.MaxDefinitionLevel(), arrow.Float64Traits.CastToBytes)
	case *file.Int32ColumnChunkReader:
		return numbers(r, field, rows, descr.MaxDefinitionLevel(), arrow.Int32Traits.CastToBytes)
	case *file.Int64ColumnChunkReader:
		return numbers(r, field, rows, descr.MaxDefinitionLevel(), arrow.Int64Traits.CastToBytes)
	}
	return nil, fmt.Errorf("%w: column %q has the encoding %s of the type %v, which is not read", columnar.ErrUnsupported, descr.Path(), encodingNames[byteStreamSplit], descr.PhysicalType())
}

// numbers reads all rows of a column into an array of its type.
func numbers[T any](r interface {
	HasNext() bool
	Err() error
	ReadBatch(size int64, values []T, def, rep []int16) (total int64, read int, err error)
}, field arrow.Field, rows int, most int16, bytes func([]T) []byte) (arrow.Array, error) {
	// The number of rows in a damaged file is not believed: slices grow with what is read.
	var values []T
	var valid []byte
	nulls, size := 0, min(rows, 1<<16)
	batch, levels := make([]T, size), make([]int16, size)
	for len(values) < rows && r.HasNext() {
		clear(levels)
		total, read, err := r.ReadBatch(int64(min(rows-len(values), size)), batch, levels, nil)
		if err != nil {
			return nil, err
		}
		if total <= 0 {
			break
		}
		next := 0
		for _, level := range levels[:total] {
			at := len(values)
			if at%8 == 0 {
				valid = append(valid, 0)
			}
			if level < most {
				var none T
				values = append(values, none)
				nulls++
				continue
			}
			if next == read {
				return nil, fmt.Errorf("row %d has no value", at)
			}
			values = append(values, batch[next])
			bitutil.SetBit(valid, at)
			next++
		}
	}
	if err := r.Err(); err != nil {
		return nil, err
	}
	if len(values) != rows {
		return nil, fmt.Errorf("it has %d rows, expected %d", len(values), rows)
	}
	data := array.NewData(field.Type, rows, []*memory.Buffer{memory.NewBufferBytes(valid), memory.NewBufferBytes(bytes(values))}, nil, nulls, 0)
	defer data.Release()
	return array.MakeFromData(data), nil
}
