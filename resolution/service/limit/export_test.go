package limit

// SetMaxKeys bounds each of the 64 shards to fewer keys than it otherwise may
// hold, so that a test need not make so many.
func (b *Buckets) SetMaxKeys(n int) { b.maxKeys = n }

// Len returns the number of keys remembered.
func (b *Buckets) Len() int {
	n := 0
	for i := range b.shards {
		s := &b.shards[i]
		s.mu.Lock()
		n += len(s.buckets)
		s.mu.Unlock()
	}
	return n
}
