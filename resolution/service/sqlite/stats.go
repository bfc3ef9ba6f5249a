package sqlite

import (
	"context"

	"github.com/leadetl/leadetl/resolution/service/state"
)

// Stats counts unfinished jobs and reads how many deliveries there are: what
// waits or died of those costs nothing, however many they are.
func (s *Store) Stats(ctx context.Context) (st state.Stats, err error) {
	var job, due *int64
	err = s.reads.QueryRowContext(ctx, `WITH RECURSIVE `+awaiting+` SELECT
		(SELECT count(*) FROM resolutions WHERE finished IS NULL AND status = 'queued'),
		(SELECT count(*) FROM resolutions WHERE status = 'processing'),
		(SELECT min(requested) FROM resolutions WHERE finished IS NULL),
		(SELECT count FROM undelivered WHERE state = 'pending'),
		(SELECT count FROM undelivered WHERE state = 'dead'),
		(SELECT min(due) FROM awaiting)`).Scan(&st.Queued, &st.Processing, &job, &st.Pending, &st.Dead, &due)
	st.OldestJob, st.OldestDue = optionalMoment(job), optionalMoment(due)
	return st, unavailable(err)
}
