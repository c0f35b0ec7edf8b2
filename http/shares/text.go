package shares

import (
	"strconv"
	"strings"

	"turnstone/protocol"
)

// texts are the texts of the page of a share in one language.
type texts struct {
	Language, Direction            string
	Untitled, Shared, Expires      string
	Question, Answer               string
	Older, Newer, Notice           string
	NotShared, Artifacts           string
	Copy, Copied                   string
	Alerts                         map[string]string // see markdown.Alerts; nil: in English
	Kinds                          map[protocol.ArtifactKind]string
	Missing, MissingDetail         string
	Limited, LimitedDetail         string
	Unavailable, UnavailableDetail string
}

// languages are the languages of the app. The first one is the default.
var languages = []texts{
	{
		Language: "en", Direction: "ltr", Untitled: "Shared conversation", Shared: "Shared", Expires: "Expires",
		Question: "Question", Answer: "Answer", Older: "Earlier messages", Newer: "Later messages",
		NotShared: "File not shared", Artifacts: "Artifacts", Copy: "Copy", Copied: "Copied",
		Kinds: map[protocol.ArtifactKind]string{
			protocol.ArtifactDocument: "Document", protocol.ArtifactCode: "Code", protocol.ArtifactHTML: "Page", protocol.ArtifactSVG: "Image",
			protocol.ArtifactTable: "Table", protocol.ArtifactDiagram: "Diagram",
		},
		Notice:  "This is a copy of a conversation with an AI model. Answers can be wrong.",
		Missing: "This share is not available", MissingDetail: "The link may be wrong, expired or revoked.",
		Limited: "Too many requests", LimitedDetail: "Wait a minute, then reload the page.",
		Unavailable: "This page cannot be shown right now", UnavailableDetail: "Reload the page in a moment.",
	},
	{
		Language: "ar", Direction: "rtl", Untitled: "محادثة مشتركة", Shared: "تمت المشاركة", Expires: "تنتهي الصلاحية",
		Question: "سؤال", Answer: "إجابة", Older: "الرسائل السابقة", Newer: "الرسائل اللاحقة",
		NotShared: "ملف غير مشارك", Artifacts: "الأعمال", Copy: "نسخ", Copied: "تم النسخ",
		Alerts: map[string]string{"note": "ملاحظة", "tip": "نصيحة", "important": "مهم", "warning": "تحذير", "caution": "تنبيه"},
		Kinds: map[protocol.ArtifactKind]string{
			protocol.ArtifactDocument: "مستند", protocol.ArtifactCode: "شفرة", protocol.ArtifactHTML: "صفحة", protocol.ArtifactSVG: "صورة",
			protocol.ArtifactTable: "جدول", protocol.ArtifactDiagram: "رسم تخطيطي",
		},
		Notice:  "هذه نسخة من محادثة مع نموذج ذكاء اصطناعي. قد تكون الإجابات خاطئة.",
		Missing: "هذه المشاركة غير متاحة", MissingDetail: "قد يكون العنوان غير صحيح، أو انتهت صلاحية المشاركة أو أُلغيت.",
		Limited: "طلبات كثيرة جدًا", LimitedDetail: "انتظر دقيقة، ثم أعد تحميل الصفحة.",
		Unavailable: "لا يمكن عرض هذه الصفحة الآن", UnavailableDetail: "أعد تحميل الصفحة بعد قليل.",
	},
	{
		Language: "ja", Direction: "ltr", Untitled: "共有された会話", Shared: "共有日時", Expires: "有効期限",
		Question: "質問", Answer: "回答", Older: "前のメッセージ", Newer: "次のメッセージ",
		NotShared: "共有されていないファイル", Artifacts: "アーティファクト", Copy: "コピー", Copied: "コピーしました",
		Alerts: map[string]string{"note": "メモ", "tip": "ヒント", "important": "重要", "warning": "警告", "caution": "注意"},
		Kinds: map[protocol.ArtifactKind]string{
			protocol.ArtifactDocument: "文書", protocol.ArtifactCode: "コード", protocol.ArtifactHTML: "ページ", protocol.ArtifactSVG: "画像", protocol.ArtifactTable: "表", protocol.ArtifactDiagram: "図",
		},
		Notice:  "これは AI モデルとの会話のコピーです。回答は正しくない場合があります。",
		Missing: "この共有は利用できません", MissingDetail: "アドレスが間違っているか、共有の有効期限が切れたか、取り消された可能性があります。",
		Limited: "リクエストが多すぎます", LimitedDetail: "1 分ほど待ってから、ページを再読み込みしてください。",
		Unavailable: "現在このページを表示できません", UnavailableDetail: "しばらくしてから、ページを再読み込みしてください。",
	},
}

// Kind returns the name of a kind of artifacts, for the template.
func (t *texts) Kind(kind protocol.ArtifactKind) string { return t.Kinds[kind] }

// textsFor returns the texts in the language that a header Accept-Language prefers.
func textsFor(accepted string) *texts {
	best, weight := &languages[0], 0.0
	for item := range strings.SplitSeq(accepted, ",") {
		tag, quality, weighed := strings.Cut(strings.TrimSpace(item), ";q=")
		primary, _, _ := strings.Cut(tag, "-")
		q := 1.0
		if weighed {
			var err error
			if q, err = strconv.ParseFloat(strings.TrimSpace(quality), 64); err != nil {
				continue
			}
		}
		for i := range languages {
			if strings.EqualFold(primary, languages[i].Language) && q > weight {
				best, weight = &languages[i], q
			}
		}
	}
	return best
}
