package capture

// Loan is memory that somebody holds beside the copies of a Budget, and that counts there. One goroutine at a time.
type Loan struct {
	Budget *Budget // nil is no bound
	held   int64
}

// Hold makes the loan n bytes. It is false, and the loan as it was, where the budget has no more.
func (l *Loan) Hold(n int64) bool {
	if n > l.held && !l.Budget.take(n-l.held) {
		return false
	}
	if n < l.held {
		l.Budget.give(l.held - n)
	}
	l.held = n
	return true
}

// Must is Hold of what is held already and cannot be let go: it may exceed the budget, which then has nothing for others.
func (l *Loan) Must(n int64) {
	l.Budget.give(l.held - n)
	l.held = n
}

// Release gives the loan back.
func (l *Loan) Release() { l.Must(0) }
