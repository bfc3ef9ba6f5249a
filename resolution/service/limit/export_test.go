package limit

// SetMaxKeys bounds each of the 64 shards to fewer keys than it otherwise may
// hold, so that a test need not make so many.
func (b *Buckets) SetMaxKeys(n int) { b.maxKeys = n }
