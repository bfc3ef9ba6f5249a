package client

import "github.com/leadetl/leadetl/resolution"

// Read reads the status and body of a stored answer, and returns what Do returned
// when the answer came: its data depends on these two only.
func Read(op resolution.Operation, status int, body []byte) (resolution.Reply, error) {
	return kept(op, status, body).reply()
}

// ReadSearch is Read for an answer to Start or Poll.
func ReadSearch(op resolution.Operation, status int, body []byte) (resolution.SearchReply, error) {
	return kept(op, status, body).searchReply()
}

func kept(op resolution.Operation, status int, body []byte) answer {
	return answer{operation: op, status: status, body: body}
}
