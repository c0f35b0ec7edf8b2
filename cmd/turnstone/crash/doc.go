// Package crash attacks a running Turnstone and holds it to its promises. It has tests only.
//
// TestCrash starts the built program on a private Postgres and Redis, behind proxies that it can cut, with stand-ins for
// the model and for a tool with an effect. Clients of its own start, steer and cancel turns, write drafts and titles,
// repeat themselves and read from anywhere, while faults come several times a second: kill -9, SIGTERM and pauses of the
// service, among them a paused process that wakes up when a successor has taken over; immediate stops of Postgres, COMMITs
// and single statements whose answers are lost; Redis gone or frozen; model connections that are reset.
//
// It works in rounds. At the end of a round the faults stop, everything comes to rest, and what the clients, the model and
// the tool remember is held against what the database has (check_test.go, linear_test.go). A run that finds something
// leaves a bundle below tmp/crash and says how to repeat it: the seed decides every fault and every choice of a client.
//
// The checker is tested too: planted_test.go breaks each promise in a made-up record and wants it found.
package crash
