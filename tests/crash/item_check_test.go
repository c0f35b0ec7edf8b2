package crash

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"turnstone/protocol"
	"turnstone/protocol/verify"
)

// storedItems are the shares, upload sessions and files of the database, by the token in their title or filename.
type storedItems struct {
	Shares, Uploads, Files map[string][]string // identifiers
	SHA256                 map[string]string   // of files, by identifier
}

const itemsSQL = `
select 'share', share_id, title, '' from shares where created_at >= $1 and account_id = any($2)
union all
select 'upload', upload_id, filename, '' from uploads where created_at >= $1 and account_id = any($2)
union all
select 'file', file_id, filename, encode(sha256, 'hex') from files where created_at >= $1 and account_id = any($2) and deleted_at is null`

func (s *snapshot) readItems(ctx context.Context, tx pgx.Tx, accounts []protocol.AccountID, since any) error {
	s.Items = newStoredItems()
	rows, err := tx.Query(ctx, itemsSQL, since, accounts)
	if err != nil {
		return err
	}
	var kind, name, sum string
	var id [16]byte
	_, err = pgx.ForEachRow(rows, []any{&kind, &id, &name, &sum}, func() error {
		token := strings.TrimSuffix(name, ".txt")
		switch kind {
		case "share":
			s.Items.Shares[token] = append(s.Items.Shares[token], protocol.ShareID(id).String())
		case "upload":
			s.Items.Uploads[token] = append(s.Items.Uploads[token], protocol.UploadID(id).String())
		default:
			file := protocol.FileID(id).String()
			s.Items.Files[token] = append(s.Items.Files[token], file)
			s.Items.SHA256[file] = sum
		}
		return nil
	})
	return err
}

func newStoredItems() storedItems {
	return storedItems{Shares: map[string][]string{}, Uploads: map[string][]string{}, Files: map[string][]string{}, SHA256: map[string]string{}}
}

// checkItems checks the shares and files against I1, I2, I10 and I12.
func (c *checker) checkItems() {
	c.checkWrites(opUpload, c.Stored.Items.Uploads)
	c.checkWrites(opFile, c.Stored.Items.Files)
	for _, o := range c.Operations {
		if sum := c.Stored.Items.SHA256[o.ID]; o.Kind == opFile && o.acknowledged() && sum != "" && sum != o.SHA256 {
			c.fail(changedBytes, "the file %s has the SHA-256 %s, and %s was sent", o.ID, sum, o.SHA256)
		}
	}
	c.checkShares()
}

// checkShares checks that a share exists unless its end was acknowledged. If the outcome of its end is unknown, both are right.
func (c *checker) checkShares() {
	ends := map[string]verify.Outcome{}
	for _, o := range c.Operations {
		if o.Kind != opRevoke {
			continue
		}
		if known, tried := ends[o.Text]; !tried || known != verify.Acknowledged {
			ends[o.Text] = o.outcome()
		}
		if o.acknowledged() && len(c.Stored.Items.Shares[o.Text]) > 0 {
			c.fail(stillReadable, "the end of the share %s was acknowledged, and it is stored", o.ID)
		}
	}
	var writes []verify.Write
	for _, o := range c.Operations {
		if o.Kind != opShare {
			continue
		}
		write := verify.Write{What: o.Text, ID: o.ID, Outcome: o.outcome()}
		if end, tried := ends[o.Text]; tried && end != verify.Refused {
			write.Outcome = verify.Unknown
		}
		writes = append(writes, write)
	}
	c.report(opShare, verify.CheckWrites(writes, c.Stored.Items.Shares))
}

// plantedItems returns a round with a share, a share that was ended, and a file.
func plantedItems() *planted {
	p := newPlanted()
	p.Stored.Items = storedItems{
		Shares: map[string][]string{"H1": {"share_1"}}, Uploads: map[string][]string{"F1": {"upload_1"}},
		Files: map[string][]string{"F1": {"file_1"}}, SHA256: map[string]string{"file_1": "aa"},
	}
	p.Operations = append(p.Operations,
		operation{Kind: opShare, Text: "H1", Status: 201, ID: "share_1"},
		operation{Kind: opShare, Text: "H2", Status: 201, ID: "share_2"},
		operation{Kind: opRevoke, Text: "H2", ID: "share_2"},
		operation{Kind: opRevoke, Text: "H2", ID: "share_2", Status: 204},
		operation{Kind: opUpload, Text: "F1", Status: 201, ID: "upload_1"},
		operation{Kind: opFile, Text: "F1", SHA256: "aa"},
		operation{Kind: opFile, Text: "F1", Status: 200, ID: "file_1", SHA256: "aa"},
	)
	return p
}

func TestCheckerFindsPlantedViolationsOfItems(t *testing.T) {
	for name, plant := range map[string]struct {
		breaks string
		how    func(*planted)
	}{
		"nothing": {"", func(*planted) {}},
		"an open end": {"", func(p *planted) {
			p.operation(opRevoke, 1).Status = 0
			p.Stored.Items.Shares["H2"] = []string{"share_2"}
		}},
		"a lost share":       {lost, func(p *planted) { p.Stored.Items.Shares["H1"] = nil }},
		"a doubled share":    {doubledEffects, func(p *planted) { p.Stored.Items.Shares["H1"] = []string{"share_1", "share_3"} }},
		"a share that stays": {stillReadable, func(p *planted) { p.Stored.Items.Shares["H2"] = []string{"share_2"} }},
		"a refused share":    {untruthful503, func(p *planted) { p.operation(opShare, 0).Status = 503 }},
		"a lost session":     {lost, func(p *planted) { p.Stored.Items.Uploads["F1"] = nil }},
		"a lost file":        {lost, func(p *planted) { p.Stored.Items.Files["F1"] = nil }},
		"a doubled file":     {doubledEffects, func(p *planted) { p.Stored.Items.Files["F1"] = []string{"file_1", "file_2"} }},
		"another content":    {changedBytes, func(p *planted) { p.Stored.Items.SHA256["file_1"] = "bb" }},
	} {
		t.Run(name, func(t *testing.T) {
			p, found := plantedItems(), newFindings()
			plant.how(p)
			check(&p.record, found)
			if plant.breaks == "" && !found.clean() || plant.breaks != "" && found.count(plant.breaks) == 0 {
				t.Errorf("want %q; the violations are %s", plant.breaks, fmt.Sprint(found.violations))
			}
		})
	}
}
