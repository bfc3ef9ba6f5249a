package answers

import "github.com/leadetl/leadetl/internal/format"

// schemaFormat is the number of the schema. It grows when the schema changes.
const schemaFormat = 5

// ExportFirst is the advice about a state in another format.
const ExportFirst = "with the program that wrote it, finish its runs and write its answers to a file with leadetl answers export; " +
	"then read them into a new state with leadetl answers import"

// RunsFormat is the number of the format of what a state keeps beside answers: journals and the
// files beside them, runs in windows, and nights. It grows with every change of any of them.
// The number 1 is taken.
const RunsFormat = 3

// MarkedFolders are the folders of a state that have this format.
var MarkedFolders = []string{"runs", "nights"}

// StateMark is the mark of a state, but for how it is read and written.
func StateMark(where string) format.Mark {
	return format.Mark{Where: where, Reads: RunsFormat, Advice: ExportFirst}
}

// Times are milliseconds since 1970 UTC; a hash is a Question's. Rows with a
// random key are small, and answers with their bodies are appended to another
// table. The table of open calls stays small, because calls end.
const schema = `
CREATE TABLE scopes(
	id INTEGER PRIMARY KEY,
	service TEXT NOT NULL,
	operation TEXT NOT NULL,
	settings TEXT NOT NULL, -- what else an answer depends on
	UNIQUE(service, operation, settings)
) STRICT;

-- What runs have paid; kept when answers are forgotten.
CREATE TABLE runs(
	id INTEGER PRIMARY KEY,
	name TEXT NOT NULL UNIQUE,
	intents INTEGER NOT NULL DEFAULT 0, -- calls that were begun, also those that were answered
	answers INTEGER NOT NULL DEFAULT 0,
	unpriced INTEGER NOT NULL DEFAULT 0, -- of these, without a price
	credits INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE TABLE keys(
	hash BLOB PRIMARY KEY, -- the first 16 bytes of the question's
	seq INTEGER NOT NULL -- of its answer
) STRICT, WITHOUT ROWID;

CREATE TABLE answers(
	seq INTEGER PRIMARY KEY,
	scope INTEGER NOT NULL REFERENCES scopes,
	run INTEGER NOT NULL REFERENCES runs,
	received INTEGER NOT NULL,
	outcome TEXT NOT NULL CHECK(outcome = 'matched' OR outcome = 'no_match' OR outcome = 'refused'),
	reason TEXT NOT NULL,
	status INTEGER NOT NULL, -- of HTTP
	credits INTEGER, -- null: the service did not say
	resolution TEXT NOT NULL,
	request TEXT NOT NULL,
	key TEXT NOT NULL, -- the identifier: personal data
	body ANY NOT NULL -- as it was received: text where it is text, else a blob
) STRICT;

-- Calls without an answer.
CREATE TABLE calls(
	hash BLOB PRIMARY KEY,
	scope INTEGER NOT NULL REFERENCES scopes,
	run INTEGER NOT NULL REFERENCES runs, -- that made the last attempt
	key TEXT NOT NULL,
	idempotency TEXT NOT NULL,
	attempts INTEGER NOT NULL,
	sent INTEGER NOT NULL, -- the last attempt's intent
	state TEXT NOT NULL CHECK(state = 'under_way' OR state = 'unknown' OR state = 'parked'),
	doubtful INTEGER NOT NULL CHECK(doubtful = 0 OR doubtful = 1), -- 1: an earlier attempt may have been billed
	reason TEXT NOT NULL DEFAULT '',
	status INTEGER NOT NULL DEFAULT 0,
	resolution TEXT NOT NULL DEFAULT '',
	request TEXT NOT NULL DEFAULT '',
	deadline INTEGER -- until when a parked call's answer is waited for
) STRICT, WITHOUT ROWID;
CREATE INDEX calls_resolution ON calls(resolution) WHERE resolution <> '';

CREATE VIEW answered AS SELECT
	a.seq, s.service, s.operation, s.settings, a.key,
	strftime('%Y-%m-%dT%H:%M:%fZ', a.received / 1000.0, 'unixepoch') AS received_at,
	a.outcome, a.reason, a.status, a.credits, r.name AS run, a.resolution AS resolution_id, a.request AS request_id, a.body
	FROM answers a JOIN scopes s ON s.id = a.scope JOIN runs r ON r.id = a.run;

CREATE VIEW open_calls AS SELECT
	lower(hex(c.hash)) AS key_hash, s.service, s.operation, s.settings, c.key, c.state, c.reason, c.idempotency AS idempotency_key, c.attempts,
	strftime('%Y-%m-%dT%H:%M:%fZ', c.sent / 1000.0, 'unixepoch') AS sent_at, r.name AS run, c.resolution AS resolution_id, c.request AS request_id,
	strftime('%Y-%m-%dT%H:%M:%fZ', c.deadline / 1000.0, 'unixepoch') AS deadline
	FROM calls c JOIN scopes s ON s.id = c.scope JOIN runs r ON r.id = c.run;

-- Where the log goes on behind the changes that are in the database. While it is open, a file of the
-- log with that number exists.
CREATE TABLE log(
	number INTEGER NOT NULL, -- of the next record
	before INTEGER NOT NULL, -- the checksum of the last one
	open INTEGER NOT NULL
) STRICT;
INSERT INTO log VALUES (1, 0, 0);

-- The kept bodies of open calls.
CREATE TABLE bodies(
	hash BLOB PRIMARY KEY,
	body BLOB NOT NULL -- with gzip
) STRICT;
CREATE TRIGGER body_of_call AFTER DELETE ON calls BEGIN DELETE FROM bodies WHERE hash = old.hash; END;

-- What was paid on each day, in UTC; kept when answers are forgotten.
CREATE TABLE days(
	day TEXT NOT NULL, -- 2026-11-26
	scope INTEGER NOT NULL REFERENCES scopes,
	answers INTEGER NOT NULL,
	unpriced INTEGER NOT NULL, -- of these, without a price
	credits INTEGER NOT NULL,
	PRIMARY KEY(day, scope)
) STRICT, WITHOUT ROWID;
`
