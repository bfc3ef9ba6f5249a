package serving

import (
	"log/slog"

	"github.com/leadetl/leadetl/internal/process"
)

// otherDescriptors is the number of file descriptors for everything except
// connections and callbacks: databases, the directory, listeners, the log.
const otherDescriptors = 128

// CheckDescriptors warns when the process may not open enough files for its
// connections and the callbacks it makes at once.
func CheckDescriptors(log *slog.Logger, connections, callbacks int) {
	allowed, known := process.MaxOpenFiles()
	if !known {
		return
	}
	needed := uint64(connections) + uint64(callbacks) + otherDescriptors
	if allowed < needed {
		log.Warn("the process may open fewer files than its connections need; raise the limit (ulimit -n) or allow fewer connections",
			"connections", connections, "needed", needed, "allowed", allowed)
	}
}
