package conversations

import "turnstone/persistence/open"

// LiveTurnsOf counts the live turns of the account in an expression, for its limit. Ten turns that wait for an approval count as one: they
// cost little, but all of them may continue at the same time.
func LiveTurnsOf(account string) string {
	return `(select count(*) filter (where parked_until is null) + count(parked_until) / 10 from turns where account_id = ` + account + ` and ` + open.Turns + `)`
}
