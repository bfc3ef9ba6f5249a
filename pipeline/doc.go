// Package pipeline runs a job: it reads rows, gets answers, makes columns and
// writes Parquet parts.
//
// # Words
//
// The code, errors, help and documents use these words, and no second word for the same.
//
// What a run makes:
//
//   - row: a record of the input. Row 1 of emails.csv is its first line after the header.
//   - batch: up to 8,192 rows that are read together. Batches begin anew in each file.
//   - part: consecutive rows, rows_per_part of them, and the files made of them:
//     part-00003.parquet has the rows from 3,000,001 to 4,000,000. A part is published
//     whole and then recorded. A rerun makes only the parts that are missing in the record.
//   - row group: rows of a file of a part that are encoded together.
//   - window: consecutive parts whose rows are read in one go, from a place in the input.
//     leadetl part --index 3 makes one; a whole run is one window.
//   - reject: a malformed line, kept with its text beside its part in _rejects/.
//   - outcome: what became of a row: matched, no_match, rejected, failed, suppressed or
//     skipped. All but matched have a reason, such as not_found.
//   - journal: the record of an unfinished dataset: the job, then a line for each part, and
//     another once its checksum is known.
//   - manifest: the list of the files of a finished dataset, _manifest.json. _SUCCESS comes after it.
//   - identity: the hash of everything that decides on the bytes of a job. A folder with
//     another identity is refused, unless suppression lists have grown, or the rules are newer
//     than those of an unfinished run.
//
// What a run buys:
//
//   - key: the identifier of a row in canonical form, such as ada@example.com.
//   - duplicate: a row with the key of an earlier one. It gets the same answer, for nothing.
//   - question: an operation and a key, asked of one service. It is known by its hash.
//   - scope: one operation of one service. Answers are stored by scope; two services never
//     share an answer.
//   - call: one attempt to get the answer to a question. It begins with an intent, which is
//     on disk before the request leaves.
//   - open call: a call without an answer yet. Its state is under way, unknown or parked.
//   - unknown: an open call that may have been billed, because its process died or its
//     connection broke. It is sent again only under an idempotency key that still holds, or if
//     the user wants it (--retry-unknown).
//   - parked: an open call whose answer the service has promised for later, by callback or poll.
//   - answer: what a service said to a question, kept as it came. A stored answer is stale
//     when it is older than --refresh-older-than, or a miss than --refresh-no-match-older-than;
//     a refusal always is.
//   - receipt: the columns of a row that say what its answer cost and when it came.
//   - budget account: the credits and calls that a run may still spend. The price of an open
//     call is held until its answer says what it cost.
//   - probe: the one call that leaves during an outage, to see whether it is over.
//   - permit: the leave for one request, given when pace and concurrency allow it.
//
// Where a run keeps them:
//
//   - state: the folder or bucket with journals, answers and open calls, --state.
//   - log: the changes of answers and calls, in the order in which they happened.
//   - segment: one object of a log on S3. It is created once and never changed.
//   - fence: an empty segment that ends the log of the process before, which can append
//     nothing more. A late answer to one of its open calls still counts.
//   - generation: the changes of one piece of the log, and the files that sealing makes of
//     them. Later generations win; some are merged into one from time to time.
//   - lease: a lock on S3 with a time at which it ends. Its holder renews it; who finds it
//     expired may take it.
//   - term: the number of the writer of a log, or of the attempt of a run on workers. A higher
//     term takes over before a lease expires.
//
// # Same input, same bytes
//
// The same input, answers and settings give the same files of parts, byte for byte, whatever
// the number of workers, machines and kills. That holds because:
//
//   - Rows and rows_per_part alone decide which row is in which part (TestAnyCutAndAnyWorkers),
//     also where reading begins in the middle (TestWindows).
//   - A part gets its rows in batches that follow from the input, whoever makes it
//     (TestWindows, TestStepsAsProcesses), and a row group ends by its rows, however they come
//     (TestAnyRecords).
//   - Encodings and dictionaries follow from the values of a row group (TestSameRowsSameBytes).
//   - Answers are written in the order of the rows, however late they come (TestLookUpsOfAnyWorkers),
//     and a stored answer keeps its time (TestRemoteKilled).
//   - The metadata of a file names the operation and versions, nothing of the run: runs with
//     other names, times and kills are compared (TestProgram, TestS3Killed).
//   - The disk and S3 get the same files (TestS3).
package pipeline
