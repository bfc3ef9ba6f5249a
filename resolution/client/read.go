package client

import "github.com/leadetl/leadetl/resolution"

// Read makes of the status and body of a kept answer what Do made of them when
// they came: what an answer says of its data is in these alone.
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
