package badservice

// Faults are independent probabilities of faults, from 0 to 1.
type Faults struct {
	// Before a question is processed or charged: Unavailable is a 503 with an
	// HTML body, Limited a 429 with the wait in one of many forms, and
	// ResetBefore a broken connection.
	Unavailable, Limited, ResetBefore float64

	// After the answer was made and charged: Failed is a 500, ResetAfter a broken
	// connection, Truncated a body that ends too early, and WrongTypes a 200
	// whose members have wrong types.
	Failed, ResetAfter, Truncated, WrongTypes float64

	// Mixed sends the answer to the last other question of the path, as a proxy that mixes
	// up answers or caches them. Doubled sends the answer again on the same connection,
	// before the next request or just after it came. Both need answers that name their
	// question, which all but a 404 do.
	Mixed, Doubled float64
	// Slow sends the answer in small pieces.
	Slow float64
	// Spelled writes the answer in another form that callers must understand.
	Spelled float64
	// Later answers a single-record call that has a callback address with the
	// status processing, and posts the answer to that address. Twice posts it
	// twice.
	Later, Twice float64
}

// Storm has faults of every kind: about every seventh call fails.
func Storm() Faults {
	return Faults{
		Unavailable: 0.02, Limited: 0.002, ResetBefore: 0.02,
		Failed: 0.025, ResetAfter: 0.025, Truncated: 0.025, WrongTypes: 0.025, Mixed: 0.01, Doubled: 0.02,
		Slow: 0.05, Spelled: 0.5, Later: 0.1, Twice: 0.3,
	}
}
