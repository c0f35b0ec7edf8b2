package e2e

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"turnstone/cmd/turnstone/sitetest"
	"turnstone/protocol"
	"turnstone/providers/model/modeltest"
)

const (
	pdfPages  = 300
	answerOn  = 217 // the page with the answer
	pdfAnswer = "The spring tide of Saint-Malo rises by twelve metres."
)

// manyPages returns a PDF with pdfPages pages, which a model cannot read at once.
func manyPages() string { return pdfOf(pdfPages, answerOn) }

// pdfOf returns a PDF with some pages, one of which has pdfAnswer.
func pdfOf(pages, answerOn int) string {
	var b strings.Builder
	b.WriteString("%PDF-1.4\n1 0 obj << /Type /Catalog /Pages 2 0 R >> endobj\n")
	b.WriteString("3 0 obj << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> endobj\n")
	kids := ""
	for page := 1; page <= pages; page++ {
		var lines strings.Builder
		for line := range 20 {
			text := fmt.Sprintf("The harbour master notes the ships of day %d in line %d of the book.", page, line)
			if page == answerOn && line == 10 {
				text = pdfAnswer
			}
			fmt.Fprintf(&lines, "(%s) Tj T*\n", text)
		}
		content := "BT /F 10 Tf 14 TL 72 720 Td\n" + lines.String() + "ET"
		object := 2 + 2*page
		kids += fmt.Sprintf("%d 0 R ", object)
		fmt.Fprintf(&b, "%d 0 obj << /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F 3 0 R >> >> /Contents %d 0 R >> endobj\n", object, object+1)
		fmt.Fprintf(&b, "%d 0 obj << /Length %d >> stream\n%s\nendstream endobj\n", object+1, len(content), content)
	}
	fmt.Fprintf(&b, "2 0 obj << /Type /Pages /Count %d /Kids [%s] >> endobj\ntrailer << /Size %d /Root 1 0 R >>\n%%%%EOF\n", pages, kids, 4+2*pages)
	return b.String()
}

var pageMarks = regexp.MustCompile(`\[page (\d+)\]`)

// quotingModel quotes the passage of the request that has the answer, and cites its page.
func quotingModel(request modeltest.Request) modeltest.Step {
	text := request.Messages[len(request.Messages)-1].Text
	before, _, found := strings.Cut(text, pdfAnswer)
	marks := pageMarks.FindAllStringSubmatch(before, -1)
	if !found || len(marks) == 0 || len(text) > 200_000 || !strings.Contains(request.System, "[2:17]") {
		return modeltest.Step{Text: []string{fmt.Sprintf("The request has no passage: %d bytes, %s", len(text), request.System)}}
	}
	return modeltest.Step{Text: []string{"By twelve", " metres [1:", marks[len(marks)-1][1], "]."}}
}

func TestAQuestionAboutALargePDFIsAnsweredWithItsPage(t *testing.T) {
	t.Parallel()
	server := modeltest.NewServer(modeltest.Chat, modeltest.Script{Respond: quotingModel})
	t.Cleanup(server.Close)
	for name, environment := range map[string][]string{
		"scripted": nil,
		"openai": {
			"TURNSTONE_MODEL_PROVIDER=openai", "TURNSTONE_MODEL_BASE_URL=" + server.URL, "TURNSTONE_MODEL_BALANCED=quoter", "TURNSTONE_MODEL_CODING=quoter",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := sitetest.NewSite(t, environment...)
			s.Start()
			u := sitetest.NewUser(t, s.Base)
			upload := uploaded(t, u, "pilot.pdf", "application/pdf", manyPages())
			conversation := u.NewConversation(t)
			u.Chat(t, sitetest.ChatBody{"input": []map[string]any{
				{"type": "text", "text": "How high does the spring tide rise in Saint-Malo?"}, {"type": "file", "file_id": upload.FileID},
			}}.In(conversation)).ReadToEnd(t)
			messages := u.Messages(t, conversation)
			answer := messages[len(messages)-1].Parts[0]
			if !strings.Contains(answer.Text, "twelve metres") || len(answer.Citations) != 1 {
				t.Fatalf("the answer is %+v", answer)
			}
			cited := answer.Citations[0]
			if cited.Page != answerOn || cited.Kind != protocol.BlockPage || cited.FileID == nil || *cited.FileID != *upload.FileID || !strings.Contains(answer.Text, cited.Marker) {
				t.Fatalf("the citation is %+v", cited)
			}
			var read protocol.TextRange
			u.Get(t, fmt.Sprintf("/files/%s/text?offset=%d&limit=%d", cited.FileID, cited.Offset, cited.Length), &read)
			if !strings.Contains(read.Text, pdfAnswer) || len(read.Blocks) != 1 || read.Blocks[0].Page != answerOn {
				t.Errorf("the cited text is %q of %+v", read.Text, read.Blocks)
			}
		})
	}
}
