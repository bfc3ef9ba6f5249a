package clitest

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/csv"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/apache/arrow/go/v17/parquet/file"
	"github.com/apache/arrow/go/v17/parquet/pqarrow"
	"github.com/klauspost/compress/zstd"
	"github.com/maxmind/mmdbwriter"
	"github.com/maxmind/mmdbwriter/mmdbtype"
	"go4.org/netipx"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"
)

// showParquet is the program parquet of scripts: it prints the rows of files
// as lines of cells between tabs, below the columns' names.
func showParquet() {
	columns := flag.String("columns", "", "which, with commas; default all")
	types := flag.Bool("types", false, "print names and types only")
	statistics := flag.Bool("statistics", false, "print the names of columns with min and max only, from the footers")
	flag.Parse()
	for i, name := range flag.Args() {
		if *statistics {
			check(printStatistics(name))
			continue
		}
		table, err := readParquet(name)
		check(err)
		chosen := strings.Split(*columns, ",")
		if *columns == "" {
			chosen = nil
			for _, f := range table.Schema().Fields() {
				chosen = append(chosen, f.Name)
			}
		}
		if *types {
			for _, f := range table.Schema().Fields() {
				fmt.Printf("%s\t%s\n", f.Name, f.Type)
			}
			continue
		}
		if i == 0 {
			fmt.Println(strings.Join(chosen, "\t"))
		}
		check(printRows(table, chosen))
	}
}

// printStatistics prints which columns have a min or a max in any row group.
func printStatistics(name string) error {
	r, err := file.OpenParquetFile(name, false)
	if err != nil {
		return err
	}
	defer r.Close()
	for c := range r.MetaData().Schema.NumColumns() {
		has := false
		for g := range r.NumRowGroups() {
			chunk, err := r.MetaData().RowGroup(g).ColumnChunk(c)
			if err != nil {
				return err
			}
			s, err := chunk.Statistics()
			if err != nil {
				return err
			}
			has = has || s != nil && (s.HasMinMax() || len(s.EncodeMin()) > 0 || len(s.EncodeMax()) > 0)
		}
		if has {
			fmt.Println(r.MetaData().Schema.Column(c).Path())
		}
	}
	return nil
}

func readParquet(name string) (arrow.Table, error) {
	r, err := file.OpenParquetFile(name, false)
	if err != nil {
		return nil, err
	}
	f, err := pqarrow.NewFileReader(r, pqarrow.ArrowReadProperties{}, memory.DefaultAllocator)
	if err != nil {
		return nil, err
	}
	return f.ReadTable(context.Background())
}

func printRows(table arrow.Table, columns []string) error {
	var places []int
	for _, name := range columns {
		found := table.Schema().FieldIndices(name)
		if len(found) != 1 {
			return fmt.Errorf("no column %s in %v", name, table.Schema())
		}
		places = append(places, found[0])
	}
	rows := array.NewTableReader(table, -1)
	for rows.Next() {
		rec := rows.Record()
		for i := range int(rec.NumRows()) {
			var cells []string
			for _, place := range places {
				cell := rec.Column(place)
				if cell.IsNull(i) {
					cells = append(cells, "null")
				} else {
					cells = append(cells, cell.ValueStr(i))
				}
			}
			fmt.Println(strings.Join(cells, "\t"))
		}
	}
	return rows.Err()
}

// convert is the program convert of scripts: it makes the files that cannot
// be written into one.
func convert() {
	if len(os.Args) != 4 {
		log.Fatal("usage: convert FORMAT FROM TO")
	}
	data, err := os.ReadFile(os.Args[2])
	check(err)
	converter := converters[os.Args[1]]
	if converter == nil {
		log.Fatal("unknown format ", os.Args[1])
	}
	out, err := converter(data)
	check(err)
	check(os.WriteFile(os.Args[3], out, 0o644))
}

var converters = map[string]func([]byte) ([]byte, error){
	"gzip": func(b []byte) ([]byte, error) {
		return pack(b, func(w io.Writer) (io.WriteCloser, error) { return gzip.NewWriter(w), nil })
	},
	"zstd": func(b []byte) ([]byte, error) {
		return pack(b, func(w io.Writer) (io.WriteCloser, error) { return zstd.NewWriter(w) })
	},
	"bom":     func(b []byte) ([]byte, error) { return append([]byte("\ufeff"), b...), nil },
	"crlf":    func(b []byte) ([]byte, error) { return bytes.ReplaceAll(b, []byte("\n"), []byte("\r\n")), nil },
	"tab":     func(b []byte) ([]byte, error) { return bytes.ReplaceAll(b, []byte(","), []byte("\t")), nil },
	"utf-16":  unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewEncoder().Bytes,
	"latin-1": charmap.ISO8859_1.NewEncoder().Bytes,
	"parquet": toParquet,
	"mmdb":    toMMDB,
	"cut":     func(b []byte) ([]byte, error) { return b[:len(b)*2/3], nil },
	"many":    many,
	"zip":     toZIP,
	"damaged": func(b []byte) ([]byte, error) { clear(b[len(b)/4 : len(b)/2]); return b, nil },
}

func pack(data []byte, packer func(io.Writer) (io.WriteCloser, error)) ([]byte, error) {
	var out bytes.Buffer
	w, err := packer(&out)
	if err != nil {
		return nil, err
	}
	_, err = w.Write(data)
	err = errors.Join(err, w.Close())
	return out.Bytes(), err
}

// toZIP makes an archive of the files whose names are the lines of a text.
func toZIP(names []byte) ([]byte, error) {
	return pack(nil, func(w io.Writer) (io.WriteCloser, error) {
		z := zip.NewWriter(w)
		for _, name := range strings.Fields(string(names)) {
			data, err := os.ReadFile(name)
			if err != nil {
				return nil, err
			}
			entry, err := z.Create(name)
			if err != nil {
				return nil, err
			}
			if _, err := entry.Write(data); err != nil {
				return nil, err
			}
		}
		return writeCloser{io.Discard, z}, nil
	})
}

type writeCloser struct {
	io.Writer
	io.Closer
}

// many repeats the lines below the header, into more than any buffer holds.
func many(b []byte) ([]byte, error) {
	header, lines, _ := bytes.Cut(b, []byte("\n"))
	return slices.Concat(header, []byte("\n"), bytes.Repeat(lines, 3<<19/len(lines))), nil
}

// toParquet makes Parquet of CSV, every column a string and empty cells null.
func toParquet(data []byte) ([]byte, error) {
	lines, err := csv.NewReader(bytes.NewReader(data)).ReadAll()
	if err != nil {
		return nil, err
	}
	var fields []arrow.Field
	for _, name := range lines[0] {
		fields = append(fields, arrow.Field{Name: name, Type: arrow.BinaryTypes.String, Nullable: true})
	}
	b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema(fields, nil))
	for _, line := range lines[1:] {
		for i, cell := range line {
			if cell == "" {
				b.Field(i).AppendNull()
			} else {
				b.Field(i).(*array.StringBuilder).Append(cell)
			}
		}
	}
	var out bytes.Buffer
	w, err := pqarrow.NewFileWriter(b.Schema(), &out, nil, pqarrow.DefaultWriterProps())
	if err != nil {
		return nil, err
	}
	err = errors.Join(w.Write(b.NewRecord()), w.Close())
	return out.Bytes(), err
}

// toMMDB makes an MMDB of CSV with the columns cidr, name, domain, type.
func toMMDB(data []byte) ([]byte, error) {
	lines, err := csv.NewReader(bytes.NewReader(data)).ReadAll()
	if err != nil {
		return nil, err
	}
	tree, err := mmdbwriter.New(mmdbwriter.Options{DatabaseType: "Sample-Company", Description: map[string]string{"en": "made for a test"}, IncludeReservedNetworks: true, BuildEpoch: 1})
	if err != nil {
		return nil, err
	}
	if want := []string{"cidr", "name", "domain", "type"}; !slices.Equal(lines[0], want) {
		return nil, fmt.Errorf("columns are %v, not %v", lines[0], want)
	}
	for _, line := range lines[1:] {
		prefix, err := netip.ParsePrefix(line[0])
		if err != nil {
			return nil, err
		}
		record := mmdbtype.Map{}
		for i, name := range lines[0][1:] {
			if line[i+1] != "" {
				record[mmdbtype.String(name)] = mmdbtype.String(line[i+1])
			}
		}
		if err := tree.Insert(netipx.PrefixIPNet(prefix), record); err != nil {
			return nil, err
		}
	}
	var out bytes.Buffer
	_, err = tree.WriteTo(&out)
	return out.Bytes(), err
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
