// Package research runs research tasks in the whole program, on a corpus of pages whose truth is known.
//
// corpus_test.go generates the pages and serves them, with a stand-in for a search engine, on loopback addresses: plain, slow,
// broken, hostile, duplicated, contradicting, refused by robots.txt, rendered by scripts, in PDF, in other languages, and with
// instructions for models. model_test.go is the stand-in for the model: it answers as the scripted model does, in each wire
// format, and adds sentences and citations that it has invented. Everything that the program asks them for is in one log.
//
// report_test.go checks whole reports against the truth. faults_test.go stops the program, and Postgres, at every step of a
// task, and compares the report with that of an undisturbed task.
package research
