package warehouse

import (
	"regexp"
	"strings"
)

// qualified quotes a name of a table, before which may be those of its schema and database.
func qualified(name string, quote func(string) string) string {
	parts := strings.Split(name, ".")
	for i, part := range parts {
		parts[i] = quote(part)
	}
	return strings.Join(parts, ".")
}

// temporary is the name of a temporary table, which is in no schema.
func (t Table) temporary(suffix string) string {
	return t.name()[strings.LastIndex(t.name(), ".")+1:] + suffix
}

// inDataset quotes a table of BigQuery, whose name has that of its dataset.
func inDataset(name string) string {
	if !strings.Contains(name, ".") {
		name = "DATASET." + name
	}
	return backslashQuoted(name)
}

var plainName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// snowflakeName quotes a name only if necessary, because a quoted name must be quoted in
// every query.
func snowflakeName(name string) string {
	switch upper := strings.ToUpper(name); {
	case snowflakeReserved[upper]:
		return doubleQuoted(upper)
	case plainName.MatchString(name):
		return name
	}
	return doubleQuoted(name)
}

// snowflakeReserved are words that cannot name a column without quotes.
// Source: Snowflake documentation, "Reserved & limited keywords".
var snowflakeReserved = func() map[string]bool {
	reserved := map[string]bool{}
	for _, word := range strings.Fields(`ACCOUNT ALL ALTER AND ANY AS BETWEEN BY CASE CAST CHECK COLUMN CONNECT CONNECTION CONSTRAINT
		CREATE CROSS CURRENT CURRENT_DATE CURRENT_TIME CURRENT_TIMESTAMP CURRENT_USER DATABASE DELETE DISTINCT DROP ELSE EXISTS FALSE
		FOLLOWING FOR FROM FULL GRANT GROUP GSCLUSTER HAVING ILIKE IN INCREMENT INNER INSERT INTERSECT INTO IS ISSUE JOIN LATERAL LEFT
		LIKE LOCALTIME LOCALTIMESTAMP MINUS NATURAL NOT NULL OF ON OR ORDER ORGANIZATION QUALIFY REGEXP REVOKE RIGHT RLIKE ROW ROWS
		SAMPLE SCHEMA SELECT SET SOME START TABLE TABLESAMPLE THEN TO TRIGGER TRUE TRY_CAST UNION UNIQUE UPDATE USING VALUES VIEW
		WHEN WHENEVER WHERE WITH`) {
		reserved[word] = true
	}
	return reserved
}()
