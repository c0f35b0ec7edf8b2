// Package feed reads the account feed: one row for each change of a resource that clients display. Triggers write the
// rows (migrations/019_account_feed.sql), so no other code does.
//
// Transactions do not commit in the order of their numbers. A read therefore takes only rows whose transaction precedes
// every transaction that is still running. Such a read never has to go back: no row appears later before its end.
package feed
