package foreigntest

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// modules are Go modules with Parquet files of other programs in them, most of
// them from apache/parquet-testing.
var modules = []string{
	"github.com/parquet-go/parquet-go@v0.32.0",
	"github.com/apache/iceberg-go@v0.7.0",
	"github.com/apache/arrow-go/v18@v18.8.0",
}

// folders are where the files of others are: of modules that can be had, and
// what LEADETL_FOREIGN lists, separated as in PATH.
func folders(t *testing.T) (all []string) {
	t.Helper()
	for _, module := range modules {
		c := exec.Command("go", "mod", "download", "-json", module)
		c.Dir, c.Env = t.TempDir(), append(os.Environ(), "GOFLAGS=")
		out, err := c.Output()
		if err != nil {
			t.Logf("%s cannot be had: %v", module, err)
			continue
		}
		var got struct{ Dir string }
		if err := json.Unmarshal(out, &got); err != nil {
			t.Fatal(err)
		}
		all = append(all, got.Dir)
	}
	return append(all, filepath.SplitList(os.Getenv("LEADETL_FOREIGN"))...)
}

// parquetFiles lists the files below a folder, each content once.
func parquetFiles(t *testing.T, folder string, seen map[string]bool) (files []string) {
	t.Helper()
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".parquet" {
			return err
		}
		data, err := os.ReadFile(path)
		if err == nil && !seen[string(data)] {
			seen[string(data)] = true
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// columns are what DuckDB writes, over a row number i. Every column has nulls
// but those of "required".
var columns = map[string]string{
	"integers": `(i % 255 - 127)::TINYINT a, (i % 9000 - 4500)::SMALLINT b, (i * 99991)::INTEGER c, (i * i * 1000003 * (1 - i % 2 * 2))::BIGINT d,
		(i % 255)::UTINYINT e, i::USMALLINT f, (i * 99991)::UINTEGER g, (18446744073709551615 - i::UBIGINT) h, (i * 1e30)::HUGEINT k`,
	"numbers": `(i / 8)::FLOAT a, (i / 7)::DOUBLE b, CASE i % 4 WHEN 0 THEN 'nan' WHEN 1 THEN '-inf' WHEN 2 THEN '1e300' ELSE '-0' END::DOUBLE c,
		(i % 250 * 3.5)::DECIMAL(4, 1) d, (i / 3)::DECIMAL(9, 4) e, (-i * 1.000001)::DECIMAL(18, 6) f, (i * 1e20 / 3)::DECIMAL(38, 12) g, i::DECIMAL(12, 0) h`,
	"texts": `'person' || i || '@example.com' a, CASE i % 3 WHEN 0 THEN '' WHEN 1 THEN 'w&<>' ELSE 'ü 日本 👩' END b, repeat('long ', (i % 70)::INT) c,
		('\x00\xFF' || i)::BLOB d, i::VARCHAR::BLOB e, (i % 2 = 0) f, ['small', 'medium', 'large'][i % 3 + 1]::ENUM('small', 'medium', 'large') g,
		('{"a": ' || i || '}')::JSON h`,
	"times": `DATE '1900-01-01' + (i * 13)::INT a, TIMESTAMP '1969-12-31 23:59:59.999999' + INTERVAL (i * 7919) SECOND b, TIMESTAMPTZ '2026-11-20 01:02:03.5+00' + INTERVAL (i) MINUTE c,
		TIME '00:00:00.000001' + INTERVAL (i) SECOND d, (TIMESTAMP '2026-01-01' + INTERVAL (i) MILLISECOND)::TIMESTAMP_MS e,
		(TIMESTAMP '2026-01-01' + INTERVAL (i) MICROSECOND)::TIMESTAMP_NS f, (TIMESTAMP '2026-01-01' + INTERVAL (i) SECOND)::TIMESTAMP_S g,
		INTERVAL (i) MONTH + INTERVAL (i % 40) DAY + INTERVAL (i * 1001) MILLISECOND h, TIMETZ '01:02:03+00' k, DATE '9999-12-31' - i::INT l`,
	"identifiers": `md5(i::VARCHAR) a, uuid_from_number(i) b, hash(i) c, sha256(i::VARCHAR) d`,
	"lists":       `[i, NULL, i + 1] a, [x::VARCHAR FOR x IN range(i % 5)] b, [[i], [], NULL, [NULL, 2]] c, [{'x': i, 'y': [i / 2]}] d, [NULL::INT] e`,
	"structs": `{'z': i, 'a': 'x&y', 'Nested one': {'at': DATE '2026-01-01' + i::INT, 'price': (i / 8)::DECIMAL(9, 3)}} a,
		MAP {'k' || i: i, 'second': NULL} b, MAP {i: [{'deep': [i]}]} c, {'u': uuid_from_number(i), 't': TIMESTAMP '2026-01-01 00:00:00.25', 'b': encode('é'), 'n': 0.1::FLOAT} d,
		MAP([]::INT[], []::VARCHAR[]) e`,
	"one value": `7 a, 'same' b, NULL c, NULL::VARCHAR d, true e`,
}

// duckdbFiles makes files in all forms that DuckDB writes.
func duckdbFiles(t *testing.T) (files []string) {
	t.Helper()
	db := open(t)
	defer db.Close()
	folder := t.TempDir()
	uuids := `CREATE OR REPLACE MACRO uuid_from_number(n) AS (printf('%08x-0000-4000-8000-%012x', n::BIGINT, n::BIGINT)::UUID)`
	if _, err := db.Exec(uuids); err != nil {
		t.Fatal(err)
	}
	write := func(name, list string, rows int, nulls bool, options string) {
		path := filepath.Join(folder, name+".parquet")
		source := fmt.Sprintf("SELECT %s FROM range(%d) t(i)", list, rows)
		if nulls {
			source = fmt.Sprintf("SELECT CASE WHEN i %% 7 <> 3 THEN COLUMNS(* EXCLUDE i) END FROM (SELECT i, %s FROM range(%d) t(i))", list, rows)
		}
		if _, err := db.Exec(fmt.Sprintf("COPY (%s) TO '%s' (FORMAT parquet, %s)", source, path, options)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		files = append(files, path)
	}
	for kind, list := range columns {
		for _, version := range []string{"V1", "V2"} {
			form := "PARQUET_VERSION " + version
			for _, codec := range []string{"uncompressed", "snappy", "gzip", "zstd", "brotli", "lz4"} {
				write(fmt.Sprintf("%s %s %s", kind, version, codec), list, 300, true, form+", COMPRESSION "+codec)
			}
			write(fmt.Sprintf("%s %s long", kind, version), list, 20_000, true, form+", ROW_GROUP_SIZE 16384")
			write(fmt.Sprintf("%s %s no dictionary", kind, version), list, 9000, true, form+", DICTIONARY_SIZE_LIMIT 1, ROW_GROUP_SIZE 2048")
			write(fmt.Sprintf("%s %s without nulls", kind, version), list, 10_000, false, form)
			write(fmt.Sprintf("%s %s empty", kind, version), list, 0, true, form)
		}
	}
	write("arrays", "[i, i]::BIGINT[2] f", 10, false, "PARQUET_VERSION V1")
	write("variant", "{'a': i}::VARIANT v, i id", 10, false, "PARQUET_VERSION V1")
	write("geometry", "('POINT (' || i || ' 1)')::GEOMETRY g, i id", 10, false, "PARQUET_VERSION V1")
	return files
}

// short is a file's name in the table.
func short(path string) string {
	return strings.TrimSuffix(filepath.Base(path), ".parquet")
}
