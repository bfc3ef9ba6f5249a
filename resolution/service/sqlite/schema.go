package sqlite

// schemaFormat is the number of the schema. It grows when the schema changes, or what its
// columns hold.
const schemaFormat = 7

const otherFormat = "use the program that wrote it, or name another folder to begin a new state"

// Times are milliseconds since 1970 UTC; resolutions are the 16 bytes of their
// UUID. Checks on busy tables avoid IN with a list: SQLite would build a table of
// the list for every row.
const schema = `
CREATE TABLE meta(name TEXT PRIMARY KEY, value ANY NOT NULL) STRICT, WITHOUT ROWID;
INSERT INTO meta VALUES ('credentials', 0); -- raised by every change to organizations, keys and secrets

CREATE TABLE organizations(
	id INTEGER PRIMARY KEY,
	public TEXT NOT NULL UNIQUE, -- org_…
	name TEXT NOT NULL UNIQUE,
	created INTEGER NOT NULL,
	available INTEGER NOT NULL DEFAULT 0 CHECK(available >= 0), -- the sums of the ledger
	reserved INTEGER NOT NULL DEFAULT 0 CHECK(reserved >= 0),
	test_of INTEGER REFERENCES organizations, -- not null: it has the test ledger of that organization
	suspended INTEGER, -- since when nobody may call
	deleted INTEGER -- its ledger is kept
) STRICT;
CREATE UNIQUE INDEX organizations_test ON organizations(test_of) WHERE test_of IS NOT NULL;

CREATE TABLE ledger(
	seq INTEGER PRIMARY KEY,
	at INTEGER NOT NULL,
	organization INTEGER NOT NULL REFERENCES organizations,
	kind TEXT NOT NULL,
	credits INTEGER NOT NULL,
	available INTEGER NOT NULL, -- what the entry adds to the organization's sums
	reserved INTEGER NOT NULL,
	resolution BLOB,
	operation TEXT,
	note TEXT,
	key INTEGER REFERENCES keys, -- with which the call was made
	CHECK(CASE kind
		WHEN 'capture' THEN credits > 0 AND available + reserved = -credits AND (available = 0 OR reserved = 0)
		WHEN 'reserve' THEN credits > 0 AND available = -credits AND reserved = credits
		WHEN 'release' THEN credits > 0 AND available = credits AND reserved = -credits
		WHEN 'grant' THEN credits > 0 AND available = credits AND reserved = 0
		WHEN 'adjust' THEN credits <> 0 AND available = credits AND reserved = 0
		ELSE FALSE
	END)
) STRICT;
CREATE INDEX ledger_reservations ON ledger(resolution) WHERE reserved <> 0;
CREATE INDEX ledger_organization ON ledger(organization);
CREATE TRIGGER ledger_is_not_updated BEFORE UPDATE ON ledger BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER ledger_is_not_deleted BEFORE DELETE ON ledger BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;

CREATE TABLE keys(
	id INTEGER PRIMARY KEY,
	public TEXT NOT NULL UNIQUE, -- key_…
	organization INTEGER NOT NULL REFERENCES organizations,
	label TEXT NOT NULL,
	hash BLOB NOT NULL UNIQUE, -- HMAC-SHA-256 under the pepper
	hint TEXT NOT NULL, -- the key's last characters, to tell keys apart
	created INTEGER NOT NULL,
	expires INTEGER,
	revoked INTEGER,
	operations TEXT NOT NULL DEFAULT '', -- that it may call, by commas; empty for all
	networks TEXT NOT NULL DEFAULT '', -- that it may call from, by commas; empty for all
	spending_limit INTEGER, -- credits that it may spend in all; null for any number
	spent INTEGER NOT NULL DEFAULT 0, -- with open reservations, and with what the keys that it made spend; changes with the ledger
	makes_keys INTEGER NOT NULL DEFAULT 0 CHECK(makes_keys IN (0, 1)),
	maker INTEGER REFERENCES keys -- the key that made it; null if an operator did
) STRICT;
CREATE INDEX keys_organization ON keys(organization);
CREATE INDEX keys_maker ON keys(maker) WHERE maker IS NOT NULL;

CREATE TABLE secrets(
	id INTEGER PRIMARY KEY,
	organization INTEGER NOT NULL REFERENCES organizations,
	sealed BLOB NOT NULL, -- encrypted under the pepper
	created INTEGER NOT NULL,
	expires INTEGER -- null for the present one
) STRICT;

-- Bodies are appended; what is looked up under a random key is small.
CREATE TABLE replies(
	seq INTEGER PRIMARY KEY,
	at INTEGER NOT NULL,
	key BLOB NOT NULL UNIQUE, -- hash of organization, path and Idempotency-Key
	fingerprint BLOB NOT NULL, -- hash of the request's body
	status INTEGER NOT NULL,
	body BLOB NOT NULL,
	organization INTEGER REFERENCES organizations, -- these three are null unless it answers a single-record call
	resolution BLOB,
	operation TEXT
) STRICT;
CREATE INDEX replies_resolution ON replies(resolution) WHERE resolution IS NOT NULL;

-- Keyword jobs.
CREATE TABLE resolutions(
	id BLOB PRIMARY KEY,
	organization INTEGER NOT NULL REFERENCES organizations,
	operation TEXT NOT NULL,
	status TEXT NOT NULL CHECK(status IN ('queued', 'processing', 'completed', 'failed', 'cancelled')),
	requested INTEGER NOT NULL,
	lease INTEGER NOT NULL DEFAULT 0, -- number of the last: a worker proves with it that it has the job
	held INTEGER, -- until when nobody leases it: a worker has it, or it waits for another attempt
	failures INTEGER NOT NULL DEFAULT 0, -- attempts that failed
	deaths INTEGER NOT NULL DEFAULT 0, -- attempts of which nothing was heard
	finished INTEGER,
	expired INTEGER NOT NULL DEFAULT 0 CHECK(expired IN (0, 1)), -- 1: a tombstone, its contents are no longer kept
	reserved INTEGER NOT NULL,
	spent INTEGER NOT NULL DEFAULT 0,
	taken INTEGER NOT NULL, -- the data it sees, as in snapshots
	day_start INTEGER NOT NULL,
	day_end INTEGER NOT NULL,
	edition TEXT NOT NULL,
	error TEXT, -- why it failed, a word
	callback TEXT,
	receiver TEXT, -- host and port of the callback
	work BLOB, -- what is to be done, as JSON
	payload BLOB, -- the request as it is echoed
	result BLOB, -- the finished lead as JSON
	key INTEGER REFERENCES keys -- with which the call was made
) STRICT;
CREATE INDEX resolutions_unfinished ON resolutions(requested) WHERE finished IS NULL;
CREATE INDEX resolutions_active ON resolutions(organization, requested) WHERE finished IS NULL;
CREATE INDEX resolutions_processing ON resolutions(organization) WHERE status = 'processing';
CREATE INDEX resolutions_finished ON resolutions(expired, finished) WHERE finished IS NOT NULL;
CREATE INDEX resolutions_organization ON resolutions(organization, id);

-- The data that a keyword search and its later pages see.
-- A job keeps its own copy: it may outlive this row.
CREATE TABLE snapshots(
	organization INTEGER NOT NULL REFERENCES organizations,
	fingerprint BLOB NOT NULL, -- hash of the search's fields
	taken INTEGER NOT NULL,
	day_start INTEGER NOT NULL,
	day_end INTEGER NOT NULL,
	edition TEXT NOT NULL,
	PRIMARY KEY(organization, fingerprint)
) STRICT, WITHOUT ROWID;
CREATE INDEX snapshots_taken ON snapshots(taken);

CREATE TABLE outbox(
	id INTEGER PRIMARY KEY,
	webhook TEXT NOT NULL UNIQUE, -- msg_…
	organization INTEGER NOT NULL REFERENCES organizations,
	resolution BLOB NOT NULL,
	receiver TEXT NOT NULL, -- host and port
	url TEXT NOT NULL,
	kept INTEGER NOT NULL DEFAULT 1 CHECK(kept IN (0, 1)), -- 0: its body is gone
	created INTEGER NOT NULL,
	state TEXT NOT NULL CHECK(state = 'pending' OR state = 'delivered' OR state = 'dead'),
	attempts INTEGER NOT NULL DEFAULT 0,
	due INTEGER NOT NULL, -- when the next attempt is to be made
	status INTEGER, -- of the last answer
	failure TEXT, -- of the last attempt, a word
	finished INTEGER
) STRICT;
CREATE INDEX outbox_lane ON outbox(organization, receiver, due) WHERE state = 'pending';
CREATE INDEX outbox_organization ON outbox(organization, state, id);
CREATE INDEX outbox_dead ON outbox(id) WHERE state = 'dead';
CREATE INDEX outbox_finished ON outbox(state, kept, finished) WHERE finished IS NOT NULL;

-- How many deliveries there are: counting them would take long where many are
-- kept. Other changes than deletions are added up for each group.
CREATE TABLE undelivered(
	state TEXT PRIMARY KEY,
	count INTEGER NOT NULL CHECK(count >= 0)
) STRICT, WITHOUT ROWID;
INSERT INTO undelivered VALUES ('pending', 0), ('dead', 0);
CREATE TRIGGER outbox_counts_gone AFTER DELETE ON outbox BEGIN
	UPDATE undelivered SET count = count - 1 WHERE state = OLD.state;
END;

-- Apart from the outbox, so that an attempt does not write its body again.
CREATE TABLE bodies(
	delivery INTEGER PRIMARY KEY REFERENCES outbox ON DELETE CASCADE,
	body BLOB NOT NULL
) STRICT;

-- One row for each lane with pending deliveries, which is an organization's to
-- one receiver, and when the first of them is due: what is due is found without
-- walking past a lane's many, or past an organization's.
CREATE TABLE lanes(
	organization INTEGER NOT NULL,
	receiver TEXT NOT NULL,
	due INTEGER NOT NULL,
	PRIMARY KEY(organization, receiver)
) STRICT, WITHOUT ROWID;
CREATE INDEX lanes_due ON lanes(organization, due);

-- Credits and charges are sums of the ledger and change with it.
CREATE TABLE usage(
	organization INTEGER NOT NULL REFERENCES organizations,
	day INTEGER NOT NULL, -- since 1970 UTC
	operation TEXT NOT NULL,
	key INTEGER NOT NULL, -- 0 when no key is known
	requests INTEGER NOT NULL DEFAULT 0,
	limited INTEGER NOT NULL DEFAULT 0, -- of them, refused with 429
	charges INTEGER NOT NULL DEFAULT 0,
	credits INTEGER NOT NULL DEFAULT 0,
	PRIMARY KEY(organization, day, operation, key)
) STRICT, WITHOUT ROWID;
`
