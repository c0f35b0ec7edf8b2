// Package crash attacks a running Turnstone with faults and checks that it keeps its promises. The package contains
// only tests.
//
// TestCrash starts the built program on a private Postgres and Redis, behind proxies that it can cut, with stand-ins
// for the model and for a tool with a side effect. Its clients start, steer and cancel turns, write drafts and
// titles, repeat requests, read events from any position, fill follow-up queues that the service drains, share conversations,
// end shares, store files, and start research tasks on the bundled pages, some of which they cancel. Others import exports, make
// branches and forks of what was imported, follow the feed of their account, and erase accounts.
// Meanwhile faults are injected several times a second: kill -9, SIGTERM and pauses of the service, including a
// paused process that resumes after a successor has taken over its turns; immediate stops of Postgres; lost replies to
// COMMITs and to single statements; Redis stopped or frozen; model connections that are reset.
//
// It works in rounds. At the end of a round the faults stop, all turns end, and the records of the clients, the model
// and the tool are compared with the database (check_test.go, queue_check_test.go, research_check_test.go, item_check_test.go, data_check_test.go,
// linear_test.go). A run that finds a violation leaves a bundle below tmp/crash and prints how to repeat it: the seed decides every
// fault and every choice of a client.
//
// The checker is tested too: planted_test.go and queue_planted_test.go break each promise in a made-up record and
// expect the checker to find it.
package crash
