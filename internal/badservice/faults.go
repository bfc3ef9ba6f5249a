package badservice

// Faults say how likely each misbehaviour is, from 0 to 1 and each on its own.
type Faults struct {
	// Before a question is looked at, and so before it costs anything:
	// Unavailable is a 503 whose body is HTML, Limited a 429 that says in one of
	// many forms when to come back, ResetBefore a broken connection.
	Unavailable, Limited, ResetBefore float64

	// After the answer was made and charged: Failed is a 500, ResetAfter a
	// broken connection, Truncated a body that ends too early, WrongTypes a 200
	// whose members are not of their types.
	Failed, ResetAfter, Truncated, WrongTypes float64

	// Slow sends the answer in small pieces.
	Slow float64
	// Spelled writes the answer in another of the spellings that callers have
	// to understand.
	Spelled float64
	// Later answers a single-record call that has a callback address with the
	// status processing, and posts the answer there. Twice posts it there once
	// more.
	Later, Twice float64
}

// Storm are faults of every kind: about every seventh call comes to nothing.
func Storm() Faults {
	return Faults{
		Unavailable: 0.02, Limited: 0.002, ResetBefore: 0.02,
		Failed: 0.025, ResetAfter: 0.025, Truncated: 0.025, WrongTypes: 0.025,
		Slow: 0.05, Spelled: 0.5, Later: 0.1, Twice: 0.3,
	}
}
