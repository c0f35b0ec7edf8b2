// Package erasure erases accounts. Begin makes an account unreadable at once: it ends the sessions, removes the address and
// the sign-ins, and enqueues a job. The job waits until no turn is live, then deletes the rows of every table that has an
// account_id in bounded steps, and the objects of the account. Each step and its counts are one transaction, so after a
// crash any node continues.
//
// What stays: the entries of the audit, which hold identifiers and network prefixes but no content, and a row with the
// counts, both for 400 days.
package erasure
