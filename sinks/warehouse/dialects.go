package warehouse

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/leadetl/leadetl/sinks/schema"
)

// partsPattern matches the parts of a folder, but no names that begin with "_".
const partsPattern = "part-*.parquet"

// partitionType is the type of a partition column.
func partitionType(d Dialect, p partition) string {
	if p.isDate() {
		return plainTypes[d]["DATE"]
	}
	return plainTypes[d]["STRING"]
}

func (w *writer) duckdb() {
	t := w.table
	name := qualified(t.name(), doubleQuoted)
	w.head("the table, what its columns mean, and the rows")
	w.line("CREATE TABLE IF NOT EXISTS %s (", name)
	var partitions []string
	options := ""
	for _, p := range t.partitions() {
		partitions = append(partitions, doubleQuoted(p.Name)+" "+partitionType(DuckDB, p))
	}
	w.list(func(c parsed) string { return doubleQuoted(c.Name) + " " + c.kind.in(DuckDB) + c.required() }, partitions...)
	w.line(");\n")
	w.meanings(doubleQuoted)
	if len(t.partitions()) > 0 {
		types := make([]string, len(t.partitions()))
		for i, p := range t.partitions() {
			types[i] = literal(p.Name) + ": " + partitionType(DuckDB, p)
		}
		options = ", hive_partitioning = true, hive_types = {" + strings.Join(types, ", ") + "}"
	}
	files, all := t.folder("")+"/"+partsPattern, "*"
	if t.PartitionBy != "" {
		files = t.folder("") + "/" + t.PartitionBy + "=*/" + partsPattern
		all = fmt.Sprintf("* REPLACE (nullif(%s, %s) AS %[1]s)", doubleQuoted(t.PartitionBy), literal(schema.DefaultPartition))
	}
	from := fmt.Sprintf("SELECT %s FROM read_parquet(%s%s)", all, literal(files), options)
	if !t.Replace {
		w.line("\nINSERT INTO %s BY NAME\n%s;", name, from)
		return
	}
	w.line("\nMERGE INTO %s t USING (\n  %s\n) s ON FALSE", name, from)
	w.line("WHEN NOT MATCHED BY SOURCE AND %s THEN DELETE\nWHEN NOT MATCHED THEN INSERT BY NAME;", t.replaced(func(n string) string { return "t." + doubleQuoted(n) }, literal))
}

func (w *writer) snowflake() {
	t := w.table
	name := qualified(t.name(), snowflakeName)
	w.head("the table, its format and stage, and the rows")
	w.line("CREATE TABLE IF NOT EXISTS %s (", name)
	var partitions []string
	for _, p := range t.partitions() {
		partitions = append(partitions, snowflakeName(p.Name)+" "+partitionType(Snowflake, p))
	}
	w.list(func(c parsed) string {
		return snowflakeName(c.Name) + " " + c.kind.in(Snowflake) + c.required() + " COMMENT " + literal(c.about())
	}, partitions...)
	w.line(");\n")
	stage := w.stage()
	w.line("-- The path ends in part-, so that rejects and manifests are passed by.")
	from, again := stage+"/", ""
	if t.Replace {
		w.line("-- If a statement fails: ROLLBACK. FORCE also loads files that were loaded before.")
		w.line("BEGIN TRANSACTION;\nDELETE FROM %s WHERE %s;", name, t.replaced(snowflakeName, literal))
		again = "\n  FORCE = TRUE"
		defer w.line("COMMIT;")
	}
	if len(t.partitions()) == 0 {
		w.line("COPY INTO %s\n  FROM %spart-\n  MATCH_BY_COLUMN_NAME = CASE_INSENSITIVE%s;", name, from, again)
		return
	}
	var names, values []string
	for _, c := range w.columns {
		names = append(names, snowflakeName(c.Name))
		values = append(values, fmt.Sprintf("$1:%s::%s", doubleQuoted(c.Name), c.kind.in(Snowflake)))
	}
	behind := "part-"
	for _, p := range t.partitions() {
		names = append(names, snowflakeName(p.Name))
		if !p.varies {
			values = append(values, literal(p.Value)+"::"+partitionType(Snowflake, p))
			continue
		}
		values = append(values, fmt.Sprintf("NULLIF(SPLIT_PART(SPLIT_PART('/' || METADATA$FILENAME, %s, -1), '/', 1), %s)", literal("/"+p.Name+"="), literal(schema.DefaultPartition)))
		behind = p.Name + "="
		w.line("-- Values of %s are as they stand in paths: what Hive escapes there (a/b is a%%2Fb) is to be decoded behind the load.", p.Name)
	}
	if constant := schema.PartitionPath(t.Partitions); constant != "" {
		behind = constant + "/" + behind
	}
	w.line("COPY INTO %s (\n  %s\n) FROM (SELECT\n  %s\n  FROM %s)%s;", name, strings.Join(names, ",\n  "), strings.Join(values, ",\n  "),
		literal(from+behind), again)
}

// stage makes the stage that Snowflake loads from, and returns its name in a load.
func (w *writer) stage() string {
	name := qualified(w.table.name()+"_stage", snowflakeName)
	w.line("-- Logical types: instants are instants and days are days, not numbers. The vectorized scanner: lists are arrays.")
	w.line("CREATE FILE FORMAT IF NOT EXISTS leadetl_parquet TYPE = PARQUET USE_LOGICAL_TYPE = TRUE USE_VECTORIZED_SCANNER = TRUE;\n")
	w.line("-- Fill in the integration that may read there.")
	w.line("CREATE STAGE IF NOT EXISTS %s\n  URL = %s\n  STORAGE_INTEGRATION = INTEGRATION\n  FILE_FORMAT = leadetl_parquet;\n", name, literal(w.table.location("s3://")+"/"))
	return "@" + name
}

func (w *writer) bigquery() {
	t := w.table
	name := inDataset(t.name())
	w.head("the table, and the rows")
	if t.Location != "" && !strings.HasPrefix(t.Location, "gs://") { // Source: BigQuery documentation, "LOAD DATA statement"
		from := t.Folder()
		t.Location = ""
		w.line("-- BigQuery loads from Cloud Storage: copy the dataset there first, and fill in its bucket below.")
		w.line("--   gcloud storage rsync --recursive %s %s\n", shellQuoted(from), shellQuoted(t.folder("gs://")))
	}
	w.line("CREATE TABLE IF NOT EXISTS %s (", name)
	var partitions []string
	for _, p := range t.partitions() {
		partitions = append(partitions, backslashQuoted(p.Name)+" "+partitionType(BigQuery, p))
	}
	w.list(func(c parsed) string {
		required := c.required()
		return backslashQuoted(c.Name) + " " + c.kind.in(BigQuery) + required + " OPTIONS (description = " + backslashed(c.about()) + ")"
	}, partitions...)
	w.line(");\n")
	w.line("-- enable_list_inference: lists are arrays, not records of records.")
	into := "INTO " + name
	if t.Replace {
		into = "OVERWRITE " + inDataset(t.name()+"_load")
	}
	w.line("LOAD DATA %s", into)
	prefix, behind := "", ""
	if len(t.partitions()) > 0 {
		behind = "\nWITH PARTITION COLUMNS (" + strings.Join(partitions, ", ") + ")"
		prefix = fmt.Sprintf(",\n  hive_partition_uri_prefix = %s", backslashed(t.location("gs://")))
	}
	uri := t.folder("gs://") + "/" + partsPattern
	if t.PartitionBy != "" {
		uri = t.folder("gs://") + "/" + t.PartitionBy + "=*.parquet" // only one asterisk is allowed, and it matches slashes
	}
	w.line("FROM FILES (\n  format = 'PARQUET',\n  enable_list_inference = true,\n  uris = [%s]%s\n)%s;", backslashed(uri), prefix, behind)
	if t.Replace {
		var names []string
		for _, c := range w.columns {
			names = append(names, backslashQuoted(c.Name))
		}
		for _, p := range t.partitions() {
			names = append(names, backslashQuoted(p.Name))
		}
		all := strings.Join(names, ", ")
		w.line("\nMERGE INTO %s t USING %s s ON FALSE", name, inDataset(t.name()+"_load"))
		w.line("WHEN NOT MATCHED BY SOURCE AND %s THEN DELETE\nWHEN NOT MATCHED BY TARGET THEN INSERT (%s)\n  VALUES (%s);", t.replaced(backslashQuoted, backslashed), all, all)
		w.line("DROP TABLE %s;", inDataset(t.name()+"_load"))
		return
	}
	if len(t.partitions()) == 0 {
		w.line("\n-- The same on a command line:\n--   bq load --source_format=PARQUET --parquet_enable_list_inference %s %s", strings.Trim(name, "`"), shellQuoted(uri))
	}
}

func (w *writer) redshift() {
	t := w.table
	name := qualified(t.name(), doubleQuoted)
	column := func(c parsed) string {
		return lowerQuoted(c.Name) + " " + c.kind.in(Redshift) + c.required()
	}
	w.head("the table, what its columns mean, and the rows")
	w.line("-- COPY takes columns by their place: they are in the order of the files. Times are UTC.")
	w.line("CREATE TABLE IF NOT EXISTS %s (", name)
	var partitions, values []string
	from := t.folder("s3://") + "/part-"
	for _, p := range t.partitions() {
		partitions = append(partitions, lowerQuoted(p.Name)+" "+partitionType(Redshift, p))
		value := literal(p.Value)
		if p.varies {
			value = "'VALUE'"
			from = t.folder("s3://") + "/" + p.Name + "=VALUE/part-"
		}
		values = append(values, value+"::"+partitionType(Redshift, p))
	}
	w.list(column, partitions...)
	w.line(");\n")
	w.meanings(lowerQuoted)
	nested := ""
	if slices.ContainsFunc(w.columns, func(c parsed) bool { return !c.kind.isPlain() }) {
		nested = " SERIALIZETOJSON"
	}
	into := name
	if len(partitions) > 0 {
		into = doubleQuoted(t.temporary("_load"))
		w.line("\n-- The files are without the columns that are in their path.")
		w.line("CREATE TEMP TABLE %s (", into)
		w.list(column)
		w.line(");")
	}
	if t.Replace {
		w.line("\nBEGIN;\nDELETE FROM %s WHERE %s;", name, t.replaced(lowerQuoted, literal))
		defer w.line("COMMIT;")
	}
	if t.PartitionBy != "" {
		w.line("\n-- COPY takes no values from paths: what follows is for each folder %s=VALUE, with VALUE filled in,\n-- the temporary table made empty before each. NULL is the value of %s.", t.PartitionBy, schema.DefaultPartition)
		if t.Replace {
			w.line("-- The DELETE above is for all of them, and so is COMMIT. TRUNCATE would commit, too: empty the temporary table by DELETE.")
		}
	}
	w.line("\n-- The path ends in part-, so that rejects and manifests are passed by. To load exactly")
	w.line("-- the files of a dataset: leadetl schema --dataset DATASET --redshift-manifest, and COPY … MANIFEST.")
	w.line("COPY %s FROM %s\n  IAM_ROLE default\n  FORMAT AS PARQUET%s;", into, literal(from), nested)
	if len(partitions) > 0 {
		w.line("INSERT INTO %s SELECT *, %s FROM %s;", name, strings.Join(values, ", "), into)
	}
}

func (w *writer) athena() {
	t := w.table
	w.head("an external table over the files; there is nothing to load")
	w.line("CREATE EXTERNAL TABLE IF NOT EXISTS %s (", qualified(strings.ToLower(t.name()), backquoted))
	w.list(func(c parsed) string {
		return backquoted(strings.ToLower(c.Name)) + " " + c.kind.in(Athena) + " COMMENT " + literal(c.about())
	})
	w.line(")")
	if len(t.partitions()) > 0 {
		names := make([]string, len(t.partitions()))
		for i, p := range t.partitions() {
			names[i] = backquoted(strings.ToLower(p.Name)) + " string"
		}
		w.line("PARTITIONED BY (%s)", strings.Join(names, ", "))
	}
	w.line("STORED AS PARQUET")
	w.Builder.WriteString("LOCATION " + literal(t.location("s3://")+"/"))
	if t.PartitionBy != "" {
		w.line(";\n\n-- Again whenever a partition has come.\nMSCK REPAIR TABLE %s;", qualified(strings.ToLower(t.name()), backquoted))
		return
	}
	if len(t.partitions()) > 0 {
		w.line("\nTBLPROPERTIES (\n  %s\n);", strings.Join(t.projection(), ",\n  "))
		return
	}
	w.line(";")
}

// projection lets Athena calculate partitions, so that they need not be listed.
// Source: Amazon Athena User Guide, "Set up partition projection".
func (t Table) projection() []string {
	properties := []string{"'projection.enabled' = 'true'"}
	template := t.location("s3://")
	for _, p := range t.partitions() {
		name := strings.ToLower(p.Name)
		set := func(key, value string) {
			properties = append(properties, literal("projection."+name+"."+key)+" = "+literal(value))
		}
		if p.isDate() {
			set("type", "date")
			set("format", "yyyy-MM-dd")
			set("range", p.Value+",NOW")
			set("interval", "1")
			set("interval.unit", "DAYS")
		} else {
			set("type", "injected") // queries name the value
		}
		template += "/" + p.Name + "=${" + name + "}"
	}
	return append(properties, "'storage.location.template' = "+literal(template+"/"))
}

func (w *writer) spark() {
	t := w.table
	w.head("a table over the files; there is nothing to load")
	w.line("CREATE TABLE IF NOT EXISTS %s (", qualified(t.name(), backquoted))
	var partitions, names []string
	for _, p := range t.partitions() {
		partitions = append(partitions, backquoted(p.Name)+" "+partitionType(Spark, p))
		names = append(names, backquoted(p.Name))
	}
	w.list(func(c parsed) string {
		return backquoted(c.Name) + " " + c.kind.in(Spark) + " COMMENT " + backslashed(c.about())
	}, partitions...)
	w.line(")\nUSING PARQUET")
	if len(names) > 0 {
		w.line("PARTITIONED BY (%s)", strings.Join(names, ", "))
	}
	w.line("LOCATION %s;", backslashed(t.location("s3a://")))
	if len(names) > 0 {
		w.line("\n-- Again whenever a partition has come.\nMSCK REPAIR TABLE %s;", qualified(t.name(), backquoted))
	}
}

// markdown writes the data dictionary.
func (w *writer) markdown() {
	t := w.table
	w.line("| column | type | null | unit | meaning | rule |")
	w.line("|---|---|---|---|---|---|")
	for _, c := range w.columns {
		null := c.Meaning.Null
		if !c.Nullable {
			null = "never"
		}
		w.line("| `%s` | %s | %s | %s | %s | %s |", c.Name, typeCell(c.Type), cell(null), cell(c.Meaning.Unit), cell(c.Meaning.Text), cell(c.Meaning.From))
	}
	for _, p := range t.partitions() {
		kind := "STRING"
		if p.isDate() {
			kind = "DATE"
		}
		null, what := "never", "in the path of every file, and not in the files"
		if p.varies {
			null, what = "the input has none, or the row is suppressed", "as in the input; "+what
		}
		w.line("| `%s` | %s | %s | | %s | --partition-by |", p.Name, kind, null, what)
	}
}

// typeCell writes a type in a cell without angle brackets, which may count as tags.
func typeCell(s string) string {
	if strings.Contains(s, "<") {
		return "`" + s + "`"
	}
	return s
}

// cell writes a text in a cell of a Markdown table.
func cell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }

func backslashQuoted(name string) string {
	return "`" + strings.NewReplacer(`\`, `\\`, "`", "\\`").Replace(name) + "`"
}

func lowerQuoted(name string) string { return doubleQuoted(strings.ToLower(name)) }

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_./:@%+-][A-Za-z0-9_./:@%+=-]*$`)

func shellQuoted(s string) string {
	if plainWord.MatchString(s) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
