package load

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"
)

// Corpus describes the rows that Write generates: many accounts of unequal size. The named accounts exist already.
type Corpus struct {
	Messages int           // of all accounts
	Named    []CorpusShare // accounts with a size of their own
	Others   int           // other accounts: the n-th largest has a share of the rest in proportion to 1/n
}

// CorpusShare is the size of one account.
type CorpusShare struct {
	Account       uuid.UUID
	Conversations int // with a title
	Messages      int // in its first conversation
	conversation  uuid.UUID
	branch        uuid.UUID
}

// Lengths of generated texts, in words.
const (
	titleWords    = 5
	questionWords = 15
	answerWords   = 80
	// otherMessages is the number of messages of a conversation of the other accounts.
	otherMessages = 50
)

// Word returns the word of a rank: word n occurs about 1/n as often as the most frequent one.
func Word(rank int) string { return string(appendSpelling(nil, uint64(rank))) }

// Conversation returns the first conversation of a named account, which has all of its messages.
func (c *Corpus) Conversation(named int) uuid.UUID { return c.Named[named].conversation }

// Write writes statements for psql that insert the rows. No trigger runs for them: the service indexes them afterwards,
// as it does with rows from before its index.
func (c *Corpus) Write(to io.Writer) error {
	w := &corpusWriter{Writer: bufio.NewWriter(to)}
	shares := c.shares()
	w.printf("set session_replication_role = replica;\n")
	w.table("accounts (account_id, email, email_key, display_name)", func() {
		for _, s := range shares[len(c.Named):] {
			w.printf("%[1]s\t%[1]s\t%[1]s\tLoad\n", s.Account)
		}
	})
	w.table("conversations (account_id, conversation_id, title, title_source, active_branch_id, message_count, last_activity_at, created_at)", func() {
		for i := range shares {
			w.conversations(&shares[i])
		}
	})
	w.table("branches (account_id, branch_id, conversation_id, head_depth)", func() {
		for _, s := range shares {
			for n := range s.Conversations {
				w.printf("%s\t%s\t%s\t%d\n", s.Account, s.branchOf(n), s.conversationOf(n), s.messagesOf(n))
			}
		}
	})
	w.table("branch_segments (account_id, branch_id, source_branch_id, from_depth, to_depth)", func() {
		for _, s := range shares {
			for n := range s.Conversations {
				w.printf("%[1]s\t%[2]s\t%[2]s\t1\t2147483647\n", s.Account, s.branchOf(n))
			}
		}
	})
	w.table("messages (account_id, message_id, conversation_id, branch_id, depth, role, status, parts, created_at)", func() {
		for i := range shares {
			w.messages(&shares[i])
		}
	})
	w.printf("insert into search_backfill select kind, '%[1]s', '%[1]s' from unnest(array['conversation', 'message']) kind on conflict (kind) do "+
		"update set after_account = excluded.after_account, after_id = excluded.after_id;\n", uuid.Nil)
	copy(c.Named, shares)
	if w.err != nil {
		return w.err
	}
	return w.Flush()
}

// shares returns the sizes of all accounts.
func (c *Corpus) shares() []CorpusShare {
	shares := append([]CorpusShare{}, c.Named...)
	left := c.Messages
	for _, s := range shares {
		left -= s.Messages
	}
	sum := 0.0
	for n := range c.Others {
		sum += 1 / float64(n+1)
	}
	for n := range c.Others {
		size := max(2, int(math.Round(float64(left)/sum/float64(n+1))))
		shares = append(shares, CorpusShare{Account: uuid.New(), Messages: size, Conversations: max(1, size/otherMessages)})
	}
	for i := range shares {
		shares[i].conversation, shares[i].branch = uuid.New(), uuid.New()
	}
	return shares
}

// conversationOf returns the identifier of the n-th conversation.
func (s *CorpusShare) conversationOf(n int) uuid.UUID { return numbered(s.conversation, n) }

func (s *CorpusShare) branchOf(n int) uuid.UUID { return numbered(s.branch, n) }

// numbered derives the identifier of the n-th of a kind.
func numbered(first uuid.UUID, n int) uuid.UUID {
	for i := 15; n > 0; i-- {
		first[i] ^= byte(n)
		n >>= 8
	}
	return first
}

// long reports whether all messages are in the first conversation.
func (s *CorpusShare) long() bool { return s.Messages/max(1, s.Conversations) < otherMessages }

// messagesOf returns the number of messages of the n-th conversation.
func (s *CorpusShare) messagesOf(n int) int {
	switch {
	case s.long() && n > 0:
		return 0
	case s.long():
		return s.Messages
	case n == s.Conversations-1:
		return s.Messages - n*otherMessages
	}
	return otherMessages
}

// corpusWriter writes statements for psql. Its first error ends the output.
type corpusWriter struct {
	*bufio.Writer
	err  error
	seed uint64 // of the last text
	text []byte
}

func (w *corpusWriter) printf(format string, args ...any) {
	if w.err == nil {
		_, w.err = fmt.Fprintf(w.Writer, format, args...)
	}
}

func (w *corpusWriter) table(name string, rows func()) {
	w.printf("copy %s from stdin;\n", name)
	rows()
	w.printf("\\.\n")
}

// prose returns a new text, without characters that COPY would have to escape.
func (w *corpusWriter) prose(words int) []byte {
	w.seed++
	w.text = w.text[:0]
	random := rand.New(rand.NewPCG(w.seed, 1))
	for i := range words {
		if i > 0 {
			w.text = append(w.text, ' ')
		}
		w.text = appendSpelling(w.text, zipf(random))
	}
	return w.text
}

// minute returns the time of the n-th row of an account.
func minute(n int) string {
	return time.Date(2026, 1, 1, 0, n, 0, 0, time.UTC).Format(time.RFC3339)
}

func (w *corpusWriter) conversations(s *CorpusShare) {
	for n := range s.Conversations {
		at := fmt.Sprintf("%s\t%s", minute(n), minute(n))
		w.printf("%s\t%s\t%s\tuser\t%s\t%d\t%s\n", s.Account, s.conversationOf(n), w.prose(titleWords), s.branchOf(n), s.messagesOf(n), at)
	}
}

func (w *corpusWriter) messages(s *CorpusShare) {
	number := 0
	for n := range s.Conversations {
		for depth := 1; depth <= s.messagesOf(n); depth++ {
			number++
			role, words := "user", questionWords
			if depth%2 == 0 {
				role, words = "assistant", answerWords
			}
			w.printf("%s\t%s\t%s\t%s\t%d\t%s\tcomplete\t[{\"type\":\"text\",\"text\":\"%s\"}]\t%s\n",
				s.Account, uuid.New(), s.conversationOf(n), s.branchOf(n), depth, role, w.prose(words), minute(number))
		}
	}
}
