package parquetfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand"
	"runtime"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/google/uuid"
	foreign "github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/format"

	"github.com/leadetl/leadetl/internal/rows"
)

// foreignRow has the types and encodings that our own writer does not use.
type foreignRow struct {
	Delta   int64            `parquet:"delta,delta"`
	Small   int32            `parquet:"small,delta"`
	Lengths string           `parquet:"lengths"`
	Prefix  string           `parquet:"prefix,delta"`
	Split   float64          `parquet:"split,split"`
	Split32 float32          `parquet:"split32,split"`
	Word    string           `parquet:"word,dict"`
	ID      uuid.UUID        `parquet:"id,uuid"`
	Price   int64            `parquet:"price,decimal(3:18)"`
	Old     deprecated.Int96 `parquet:"old"`
	Maybe   *int64           `parquet:"maybe,optional"`
	Flag    bool             `parquet:"flag"`
	Words   []string         `parquet:"words,list"`
}

func foreignRows(n int) []foreignRow {
	all := make([]foreignRow, n)
	for i := range all {
		all[i] = foreignRow{
			Delta: int64(i) * int64(i) * 1_000_003 * int64(1-i%2*2), Small: int32(i%7 - 3), Lengths: strings.Repeat("x", i%5), Prefix: fmt.Sprint("person", i, "@example.com"),
			Split: float64(i) / 4, Split32: float32(i) / 8, Word: fmt.Sprint("w", i%3), ID: uuid.UUID{1, 2, 3, 15: byte(i)}, Price: int64(i - 1),
			Old: deprecated.Int96{0, 0, uint32(2440588 + 365*400 + i)}, Flag: i%3 == 0, Words: []string{"a&b", fmt.Sprint(i)}[:i%3],
		}
		if i%4 != 0 {
			v := int64(i)
			all[i].Maybe = &v
		}
	}
	return all
}

func foreignFile(t testing.TB, n int, options ...foreign.WriterOption) []byte {
	t.Helper()
	var b bytes.Buffer
	w := foreign.NewGenericWriter[foreignRow](&b, options...)
	if _, err := w.Write(foreignRows(n)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestForeignEncodings(t *testing.T) {
	const n = 20_000 // more than the mini blocks of one read
	for name, options := range map[string][]foreign.WriterOption{
		"pages of version 1": {foreign.DataPageVersion(1)},
		"pages of version 2": {foreign.DataPageVersion(2)},
		"lz4 raw":            {foreign.Compression(&foreign.Lz4Raw)},
		"brotli":             {foreign.Compression(&foreign.Brotli)},
		"gzip":               {foreign.Compression(&foreign.Gzip), foreign.DataPageVersion(1)},
		"zstd":               {foreign.Compression(&foreign.Zstd)},
		"snappy":             {foreign.Compression(&foreign.Snappy), foreign.PageBufferSize(2000)},
	} {
		got, _, err := read(foreignFile(t, n, options...), []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, 1000)
		if err != nil || len(got) != n {
			t.Errorf("%s: %d rows, %v: %v", name, len(got), err, errors.Unwrap(err))
			continue
		}
		for i, row := range foreignRows(n) {
			maybe := "null"
			if row.Maybe != nil {
				maybe = fmt.Sprint(*row.Maybe)
			}
			words := "[]"
			if len(row.Words) > 0 {
				words = `["` + strings.Join(row.Words, `","`) + `"]`
			}
			days := 365*400 + i
			want := fmt.Sprint(i+1, ": ", strings.Join([]string{
				fmt.Sprint(row.Delta), fmt.Sprint(row.Small), row.Lengths, row.Prefix, fmt.Sprint(row.Split), fmt.Sprint(row.Split32),
				row.Word, row.ID.String(), thousandths(row.Price), dayAfter1970(days) + "T00:00:00Z", maybe, fmt.Sprint(row.Flag), words,
			}, " "))
			if got[i] != want {
				t.Errorf("%s:\n got %s\nwant %s", name, got[i], want)
				break
			}
		}
	}
}

func thousandths(n int64) string {
	if n < 0 {
		return fmt.Sprintf("-%d.%03d", -n/1000, -n%1000)
	}
	return fmt.Sprintf("%d.%03d", n/1000, n%1000)
}

func dayAfter1970(days int) string {
	return string((&leafOfDays).text(nil, value{bits: uint64(days)}))
}

var leafOfDays = func() leaf {
	l := leaf{element: &element{SchemaElement: &format.SchemaElement{LogicalType: format.LogicalType{Value: new(format.DateType)}}}}
	l.Type.Set(format.Int32)
	if err := l.setForm(); err != nil {
		panic(err)
	}
	return l
}()

func TestNullType(t *testing.T) {
	nulls := array.NewNull(2)
	ids := texts(2, func(i int) string { return "x" })
	record := array.NewRecord(arrow.NewSchema([]arrow.Field{{Name: "n", Type: arrow.Null, Nullable: true}, {Name: "t", Type: arrow.BinaryTypes.String}}, nil),
		[]arrow.Array{nulls, ids.Column(1)}, 2)
	got, _, err := read(write(t, record, 10), []int{0, 1}, 10)
	if want := "1: null x|2: null x"; err != nil || strings.Join(got, "|") != want {
		t.Errorf("%q, want %q, %v", got, want, err)
	}
}

// Spark wraps around in years beyond 290,000. What it writes then is refused.
func TestInt96(t *testing.T) {
	for _, c := range []struct {
		nanos int64
		day   uint32
		want  string
	}{
		{10_800_000_000_000, 5373484, "9999-12-31T03:00:00Z"},
		{0, 2440588, "1970-01-01T00:00:00Z"},
		{-32_509_551_616_000, 4189105064, errInt96.Error()},
	} {
		got := func() (text string) {
			defer func() {
				if p := recover(); p != nil {
					text = fmt.Sprint(p)
				}
			}()
			v := binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint64(nil, uint64(c.nanos)), c.day)
			return string(appendInt96(nil, v))
		}()
		if got != c.want {
			t.Errorf("%d %d: %s, want %s", c.nanos, c.day, got, c.want)
		}
	}
}

func TestIntervals(t *testing.T) {
	for _, c := range []struct {
		months, days, millis uint32
		want                 string
	}{
		{14, 3, 14_706_500, "1 year 2 months 3 days 04:05:06.500"},
		{1, 0, 0, "1 month"},
		{0, 0, 0, "00:00:00"},
		{24, 0, 1000, "2 years 00:00:01"},
	} {
		v := binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, c.months), c.days), c.millis)
		if got := string(appendInterval(nil, v)); got != c.want {
			t.Errorf("%v: %q", c, got)
		}
	}
}

func TestDecimals(t *testing.T) {
	for _, c := range []struct {
		bytes []byte
		scale int32
		want  string
	}{
		{[]byte{0}, 0, "0"}, {[]byte{0}, 2, "0.00"}, {[]byte{100}, 2, "1.00"}, {[]byte{0xff}, 2, "-0.01"},
		{[]byte{0x80, 0, 0, 0, 0, 0, 0, 0, 0}, 3, "-2361183241434822606.848"}, {[]byte{5}, 4, "0.0005"}, {nil, 1, "0.0"},
	} {
		if got := string(appendDecimal(nil, c.bytes, c.scale)); got != c.want {
			t.Errorf("%x with %d places: %q, want %q", c.bytes, c.scale, got, c.want)
		}
	}
}

// What is not read is named; columns beside it are read.
func TestUnsupported(t *testing.T) {
	schema := foreign.NewSchema("root", foreign.Group{
		"a": foreign.String(),
		"v": foreign.Optional(foreign.Variant()),
		"z": foreign.Compressed(foreign.String(), &foreign.Lz4Raw),
	})
	var b bytes.Buffer
	w := foreign.NewWriter(&b, schema)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if got, _, err := read(b.Bytes(), []int{0, 2}, 10); err != nil || len(got) != 0 {
		t.Errorf("without the column: %q, %v", got, err)
	}
	_, _, err := read(b.Bytes(), []int{1}, 10)
	if err == nil || !strings.Contains(err.Error(), `column "v": type VARIANT is not supported`) {
		t.Errorf("%v", err)
	}
}

// The levels of the oldest files: eight of three bits, the highest first. The
// example is that of the format's page about encodings.
func TestBitPackedLevels(t *testing.T) {
	levels, size, err := bitPacked([]byte{0b00000101, 0b00111001, 0b01110111, 0xff}, 8, 3)
	if err != nil || size != 3 {
		t.Fatal(size, err)
	}
	for want := range uint64(8) {
		if got, err := levels.next(); got != want || err != nil {
			t.Errorf("level %d, want %d, %v", got, want, err)
		}
	}
	if _, _, err := bitPacked([]byte{0}, 3, 3); !errors.Is(err, errPage) {
		t.Errorf("three levels in a byte: %v", err)
	}
	leaf := &element{SchemaElement: &format.SchemaElement{}, defined: 1}
	leaf.Type.Set(format.Int32)
	c := chunk{leaf: leaf, memory: new(budget), packed: []byte{0b10100000, 7, 0, 0, 0, 8, 0, 0, 0}}
	p, err := c.dataPage(&format.DataPageHeader{NumValues: 3, Encoding: format.Plain, DefinitionLevelEncoding: format.BitPacked}, len(c.packed))
	if err != nil {
		t.Fatal(err)
	}
	l := newTestLeaf(t, leaf)
	l.page, l.inPage = p, 3
	for i, want := range []string{"7", "null", "8"} {
		text, present, err := l.appendNext(nil)
		if got := string(text); err != nil || present && got != want || !present && want != "null" {
			t.Errorf("value %d: %q %v %v, want %s", i, got, present, err, want)
		}
	}
}

func newTestLeaf(t *testing.T, e *element) *leaf {
	t.Helper()
	l, err := newLeaf(e, new(budget))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// GeoParquet has shapes in columns of binary, and says so beside the schema.
func TestGeoParquet(t *testing.T) {
	for geo, want := range map[string]string{
		`{"version":"1.1.0","primary_column":"where","columns":{"where":{"encoding":"WKB","geometry_types":["Point"]}}}`: `column "where": type GEOMETRY is not supported`,
		`{"columns":{"where":{"encoding":"point"}}}`: "",
		`{"columns":{"other":{"encoding":"WKB"}}}`:   "",
		`not JSON`: "",
	} {
		schema := foreign.NewSchema("root", foreign.Group{"id": foreign.String(), "where": foreign.Leaf(foreign.ByteArrayType)})
		var b bytes.Buffer
		if err := foreign.NewWriter(&b, schema, foreign.KeyValueMetadata("geo", geo)).Close(); err != nil {
			t.Fatal(err)
		}
		if _, _, err := read(b.Bytes(), []int{0}, 10); err != nil {
			t.Errorf("%s: without the column: %v", geo, err)
		}
		if _, _, err := read(b.Bytes(), []int{1}, 10); (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", geo, err, want)
		}
	}
}

// A footer of no rows over chunks of values is refused.
func TestFooterWithoutRows(t *testing.T) {
	file := write(t, texts(3, func(i int) string { return "x" }), 10)
	meta, err := readFooter(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	root, leaves, err := schemaOf(meta.Schema)
	if err != nil || len(root.children) != 2 || checkCounts(meta, leaves) != nil {
		t.Fatal(err, checkCounts(meta, leaves))
	}
	for name, change := range map[string]func(*format.FileMetaData){
		"rows of the file":      func(m *format.FileMetaData) { m.NumRows = 0 },
		"rows of the group too": func(m *format.FileMetaData) { m.NumRows, m.RowGroups[0].NumRows = 0, 0 },
		"negative rows":         func(m *format.FileMetaData) { m.NumRows, m.RowGroups[0].NumRows = -1, -1 },
		"values of a column":    func(m *format.FileMetaData) { m.RowGroups[0].Columns[1].MetaData.NumValues = 2 },
		"columns":               func(m *format.FileMetaData) { m.RowGroups[0].Columns = m.RowGroups[0].Columns[:1] },
	} {
		meta, err := readFooter(bytes.NewReader(file), int64(len(file)))
		if err != nil {
			t.Fatal(err)
		}
		change(meta)
		if err := checkCounts(meta, leaves); !errors.Is(err, errCounts) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Damage ends in an error or in other values, never in a panic, and takes no
// more memory than the file could need.
func TestDamagedMemory(t *testing.T) {
	random := rand.New(rand.NewSource(1))
	nested := nestedFile(t, 100, 50)
	for name, file := range map[string][]byte{"nested": nested, "v1": foreignFile(t, 100, foreign.DataPageVersion(1)), "v2": foreignFile(t, 100, foreign.Compression(&foreign.Zstd))} {
		for range 60 {
			damaged := bytes.Clone(file)
			for range 1 + random.Intn(3) {
				damaged[random.Intn(len(damaged))] = byte(random.Intn(256))
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			r, err := Open("a.parquet", bytes.NewReader(damaged))
			if err == nil {
				for column := range r.Columns() {
					_, _, err = read(damaged, []int{column}, 1000)
					if format := new(rows.FormatError); err != nil && !errors.As(err, &format) {
						t.Errorf("%s: %v", name, err)
					}
				}
			}
			runtime.ReadMemStats(&after)
			if taken := after.TotalAlloc - before.TotalAlloc; taken > 2*maxPage {
				t.Errorf("%s: %d MB taken for a file of %d bytes", name, taken>>20, len(file))
			}
		}
	}
}
