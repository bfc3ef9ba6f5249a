package client

import "github.com/leadetl/leadetl/resolution"

// Read reads the status and body of a stored answer, and returns what Do,
// Start or Poll returned when the answer came: its data depends on these two only.
func Read(op resolution.Operation, status int, body []byte) (resolution.Reply, error) {
	return answer{operation: op, status: status, body: body}.reply()
}
